use crate::{folder, golden, golden_pairs, gzip, items, sentences, table, with_columns, xz, zstd};
use attend_data::{Column, Columns, FilePair, Format, Input, MAX_LINE_BYTES};
use std::path::Path;

const ENGLISH: &str = "one\n\ntwo \"quoted\"\na\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f\n<b>&amp;\n";
const GERMAN: &str = "eins\nleer\nzwei „zitiert“\nx\n日本語 😀\n";

/// The corpus as a file of each format.
fn files() -> Vec<(Format, String)> {
    let pairs = || ENGLISH.lines().zip(GERMAN.lines());
    let tsv = pairs().map(|(en, de)| format!("{en}\t{de}\textra\n"));
    let jsonl = pairs().map(|(en, de)| {
        let record = serde_json::json!({ "id": 7, "en": en, "de": de });
        format!("{record}\n")
    });
    let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
    let tmx = pairs().map(|(en, de)| {
        let (en, de) = (escape(en), escape(de));
        format!(
            "<tu>\n<tuv xml:lang=\"en\"><seg>{en}</seg></tuv><tuv xml:lang=\"de\"><seg>{de}</seg></tuv>\n</tu>\n"
        )
    });
    let tmx = tmx.collect::<String>();
    let tmx = format!(
        "<?xml version=\"1.0\"?>\n<tmx version=\"1.4\"><header/>\n<body>\n{tmx}</body></tmx>\n"
    );
    vec![
        (Format::Tsv, tsv.collect()),
        (Format::Jsonl, jsonl.collect()),
        (Format::Tmx, tmx),
    ]
}

fn parallel(folder: &Path) -> Input {
    Input::Text(FilePair {
        source: folder.join("en"),
        target: folder.join("de"),
    })
}

fn expected() -> Vec<(String, String)> {
    // `str::lines` splits at LF only, too.
    let pairs = ENGLISH.lines().zip(GERMAN.lines());
    pairs.map(|(en, de)| (en.into(), de.into())).collect()
}

/// Plain and compressed, with LF or CR LF, with and without a byte order mark.
fn dressed(text: &str) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for text in [text.to_string(), text.replace('\n', "\r\n")] {
        for text in [text.clone(), format!("\u{feff}{text}")] {
            let bytes = text.as_bytes();
            all.extend([bytes.to_vec(), gzip(bytes), zstd(bytes), xz(bytes)]);
        }
    }
    all
}

#[test]
fn every_format_in_every_dress_gives_the_same_pairs() {
    for (english, german) in dressed(ENGLISH).iter().zip(dressed(GERMAN).iter().rev()) {
        let dir = folder(&[("en", english), ("de", german)]);
        assert_eq!(sentences(&parallel(dir.path())).unwrap(), expected());
    }
    for (format, text) in files() {
        for bytes in dressed(&text) {
            let dir = folder(&[("file", &bytes)]);
            let input = table(dir.path().join("file"), format);
            assert_eq!(sentences(&input).unwrap(), expected(), "{format}");
        }
    }
}

#[test]
fn a_damaged_file_of_any_format_is_an_error_with_its_kind() {
    for (format, text) in files() {
        for (kind, bytes) in [
            ("gzip", gzip(text.as_bytes())),
            ("zstd", zstd(text.as_bytes())),
            ("xz", xz(text.as_bytes())),
        ] {
            let dir = folder(&[("file", &bytes[..bytes.len() - 6])]);
            let items = items(&table(dir.path().join("file"), format), &dir);
            let last = items.last().unwrap();
            let place = format!("file: damaged {kind} data after line ");
            assert!(last.contains(&place), "{format} {last}");
        }
    }
}

#[test]
fn pairs_go_on_after_bad_lines_of_parallel_text() {
    let dir = folder(&[
        ("en", b"1\n\xff\n3\n4\0\n5\n6\n"),
        ("de", b"1\n2\n\xff\n4\n5\0\n6"),
    ]);
    let expected = [
        "1: 1 | 1",
        "en:2: not valid UTF-8",
        "de:3: not valid UTF-8",
        "en:4: a NUL character",
        "de:5: a NUL character",
        "6: 6 | 6",
    ];
    assert_eq!(items(&parallel(dir.path()), &dir), expected);
}

#[test]
fn a_bad_last_line_does_not_hide_unequal_counts() {
    let dir = folder(&[("en", b"1\n\xff\n\xff\n"), ("de", b"1\n")]);
    let expected = ["1: 1 | 1", "en has 3 lines but de has 1"];
    assert_eq!(items(&parallel(dir.path()), &dir), expected);
    let dir = folder(&[("en", b""), ("de", b"\n")]);
    let expected = ["en has 0 lines but de has 1"];
    assert_eq!(items(&parallel(dir.path()), &dir), expected);
}

#[test]
fn damage_of_the_longer_file_goes_before_unequal_counts() {
    let text: String = (0..5000).map(|i| format!("{}\n", i * 7919)).collect();
    let cut = gzip(text.as_bytes());
    let dir = folder(&[("en", b"1\n"), ("de", &cut[..cut.len() / 2])]);
    let items = items(&parallel(dir.path()), &dir);
    assert_eq!(items.len(), 2);
    assert!(items[1].contains("de: damaged gzip data after line "));
}

#[test]
fn columns_of_tsv_are_numbers_or_names() {
    let dir = folder(&[("x", b"id\tde\ten\n1\teins\tone\n2\t\"zwei\n3\t\t\n")]);
    let input = table(dir.path().join("x"), Format::Tsv);
    let named = |source: &str, target: &str| {
        let name = |name: &str| Column::Name(name.into());
        let mut input = with_columns(input.clone(), name(source), name(target));
        let Input::Table { columns, .. } = &mut input else {
            panic!()
        };
        columns.header = true;
        input
    };
    let expected = [
        "2: one | eins",
        "x:3: no column 2: the line has 2, from 0",
        "4:  | ",
    ];
    assert_eq!(items(&named("en", "de"), &dir), expected);

    let mut by_language = input.clone();
    if let Input::Table { columns, .. } = &mut by_language {
        columns.header = true;
    }
    assert_eq!(items(&by_language, &dir), expected);

    let numbers = with_columns(input.clone(), Column::Number(1), Column::Number(0));
    assert_eq!(items(&numbers, &dir)[2], "3: \"zwei | 2");
    let error = named("fr", "de").open().err().unwrap();
    assert!(error.to_string().ends_with("x:1: no column \"fr\""));
    assert_eq!(error.hint().unwrap(), "its columns are id, de, en");
}

#[test]
fn bad_lines_of_tsv_are_reported_and_passed() {
    let long = format!("1\t{}\n", "x".repeat(10 << 20));
    let text = [long.as_bytes(), b"a\tb\n\nc\n\xff\td\ne\0\tf\ng\th\ti"].concat();
    let dir = folder(&[("x", &text)]);
    let expected = [
        "x:1: the line has more than 1048576 bytes",
        "2: a | b",
        "x:3: no column 1: the line has 1, from 0",
        "x:4: no column 1: the line has 1, from 0",
        "x:5: not valid UTF-8",
        "x:6: a NUL character in the source",
        "7: g | h",
    ];
    assert_eq!(
        items(&table(dir.path().join("x"), Format::Tsv), &dir),
        expected
    );
}

#[test]
fn fields_of_json_are_found_by_name_path_or_language() {
    let check = |text: &str, names: Option<(&str, &str)>, expected: &[&str]| {
        let dir = folder(&[("x", text.as_bytes())]);
        let mut input = table(dir.path().join("x"), Format::Jsonl);
        if let Some((source, target)) = names {
            let name = |name: &str| Column::Name(name.into());
            input = with_columns(input, name(source), name(target));
        }
        assert_eq!(items(&input, &dir), expected, "{text}");
    };
    check(r#"{"en":"a","de":"b"}"#, None, &["1: a | b"]);
    check(
        r#"{"translation":{"en":"a","de":"b"}}"#,
        None,
        &["1: a | b"],
    );
    check(
        r#"{"en":"a","de":"b","translation":{"en":"c","de":"d"}}"#,
        None,
        &["1: a | b"],
    );
    let deep = r#"{"a":{"b.c":{"d":"x"}},"a.b":"y"}"#;
    check(deep, Some(("a.b.c.d", "a.b")), &["1: x | y"]);
    let exact = r#"{"t.en":"exact","t":{"en":"path","de":"b"}}"#;
    check(exact, Some(("t.en", "t.de")), &["1: exact | b"]);
    // The first record decides, and what it lacks is missing later.
    check(
        "{\"translation\":{\"en\":\"a\",\"de\":\"b\"}}\n{\"en\":\"c\",\"de\":\"d\"}\n",
        None,
        &["1: a | b", "x:2: no field `translation.en`"],
    );
    check(
        "{}\n{\"en\":\"c\",\"de\":\"d\"}\n",
        None,
        &["x:1: no field `en`, nor `translation.en`", "2: c | d"],
    );
}

#[test]
fn bad_lines_of_json_are_reported_and_passed() {
    let text = [
        r#"{"en":"a\nb\r\nc\rd","de":"e"}"#,
        "",
        r#"{"en":"a"}"#,
        r#"{"en":"a","de":null}"#,
        r#"{"en":["a"],"de":"b"}"#,
        r#"{"en":"a","de":"b"#,
        r#"["a","b"]"#,
        r#"{"en":"a\u0000","de":"b"}"#,
        r#"{"en":"\ud800","de":"b"}"#,
        r#"{"en":"\ud83d\ude00","de":"b"}"#,
        &format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000)),
        r#"{"en":"last","de":"line"}"#,
    ];
    let dir = folder(&[("x", text.join("\n").as_bytes())]);
    let items = items(&table(dir.path().join("x"), Format::Jsonl), &dir);
    let expected = [
        "1: a b c d | e",
        "x:2: a blank line, not JSON",
        "x:3: no field `de`",
        "x:4: the field `de` is null, not text",
        "x:5: the field `en` is a list, not text",
        "x:6: not JSON: EOF while parsing a string at column 17",
        "x:7: no field `en`",
        "x:8: a NUL character in the source",
        "x:9: not JSON: ",
        "10: 😀 | b",
        "x:11: not JSON: ",
        "12: last | line",
    ];
    assert_eq!(items.len(), expected.len());
    for (item, expected) in items.iter().zip(expected) {
        assert!(item.starts_with(expected), "{item}");
    }
}

#[test]
fn a_long_line_of_json_is_bad_and_bounded() {
    let long = format!("{{\"en\":\"{}\"}}\n", "x".repeat(MAX_LINE_BYTES));
    let dir = folder(&[("x", (long + "{\"en\":\"a\",\"de\":\"b\"}").as_bytes())]);
    let expected = ["x:1: the line has more than 1048576 bytes", "2: a | b"];
    assert_eq!(
        items(&table(dir.path().join("x"), Format::Jsonl), &dir),
        expected
    );
}

#[test]
fn json_lines_that_datasets_wrote_are_read() {
    for name in ["hub.jsonl", "ascii.jsonl"] {
        let pairs = sentences(&table(golden(name), Format::Jsonl));
        assert_eq!(pairs.unwrap(), golden_pairs(), "{name}");
    }
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_needs_a_feature_which_the_error_names() {
    let error = table(golden("hub.parquet"), Format::Parquet).open();
    let error = error.err().unwrap();
    assert!(error.to_string().contains("hub.parquet"));
    assert!(error.hint().unwrap().contains("--features parquet"));
}

#[test]
fn an_empty_file_has_no_pairs() {
    let dir = folder(&[("x", b"")]);
    for format in [Format::Tsv, Format::Jsonl] {
        assert!(items(&table(dir.path().join("x"), format), &dir).is_empty());
    }
    let columns = Columns {
        source: None,
        target: None,
        header: true,
        languages: ("en".into(), "de".into()),
    };
    let headless = Input::Table {
        path: dir.path().join("x"),
        format: Format::Tsv,
        columns,
    };
    assert!(items(&headless, &dir).is_empty());
}
