use crate::{folder, gzip, items, table, with_columns};
use attend_data::{Column, Format, MAX_LINE_BYTES};

/// Reads a file with these units, each on lines of its own, from line 2 on.
fn units(body: &str) -> Vec<String> {
    file(format!("<tmx version=\"1.4\"><header/><body>\n{body}</body></tmx>").as_bytes())
}

fn file(bytes: &[u8]) -> Vec<String> {
    let dir = folder(&[("x", bytes)]);
    items(&table(dir.path().join("x"), Format::Tmx), &dir)
}

fn unit(en: &str, de: &str) -> String {
    format!(
        "<tu><tuv xml:lang=\"en\"><seg>{en}</seg></tuv><tuv xml:lang=\"de\"><seg>{de}</seg></tuv></tu>\n"
    )
}

#[test]
fn a_unit_is_a_pair_at_its_line() {
    let body = unit("one", "eins") + "\n<!-- note -->\n" + &unit("two", "zwei");
    assert_eq!(units(&body), ["2: one | eins", "5: two | zwei"]);
}

#[test]
fn inline_elements_are_removed_and_only_native_codes_with_their_content() {
    let en = "a <bpt i=\"1\">&lt;b></bpt>bold<ept i=\"1\">&lt;/b></ept> <hi>marked <hi>twice</hi></hi>\
              <ph x=\"1\">code<sub>inner</sub>code</ph><it pos=\"begin\">x</it><ut>y</ut> <ph/>end";
    assert_eq!(units(&unit(en, "b")), ["2: a bold marked twice end | b"]);
}

#[test]
fn entities_character_references_and_cdata_are_text() {
    let en = "&lt;&gt;&amp;&quot;&apos; &#228;&#xE4;&#x1F600; <![CDATA[<b>&amp;]]>";
    assert_eq!(
        units(&unit(en, "AT&T & co")),
        ["2: <>&\"' ää😀 <b>&amp; | AT&T & co"]
    );
}

#[test]
fn line_ends_inside_a_segment_become_spaces() {
    assert_eq!(units(&unit("a\nb\r\nc&#10;d", "e")), ["2: a b c d | e"]);
}

#[test]
fn a_language_matches_its_varieties_and_an_exact_one_first() {
    let unit = |tags: [&str; 3]| {
        let tuv = tags.map(|tag| format!("<tuv {tag}><seg>{}</seg></tuv>", tag.replace('"', "'")));
        format!("<tu>{}</tu>\n", tuv.concat())
    };
    let body = [
        unit(["xml:lang=\"EN-us\"", "lang=\"de_AT\"", "xml:lang=\"fr\""]),
        unit(["xml:lang=\"en-GB\"", "xml:lang=\"en\"", "xml:lang=\"DE\""]),
        unit(["xml:lang=\"eng\"", "xml:lang=\"de\"", "xml:lang=\"e\""]),
        unit(["xml:lang=\"en\"", "xml:lang=\"deu\"", "id=\"de\""]),
    ];
    let expected = [
        "2: xml:lang='EN-us' | lang='de_AT'",
        "3: xml:lang='en' | xml:lang='DE'",
        "x:4: no en",
        "x:5: no de",
    ];
    assert_eq!(units(&body.concat()), expected);
}

#[test]
fn the_config_can_name_other_languages() {
    let body = unit("a", "b").replace("\"de\"", "\"pt-BR\"");
    let dir = folder(&[("x", format!("<tmx>{body}</tmx>").as_bytes())]);
    let input = table(dir.path().join("x"), Format::Tmx);
    let input = with_columns(
        input,
        Column::Name("pt_br".into()),
        Column::Name("EN".into()),
    );
    assert_eq!(items(&input, &dir), ["1: b | a"]);
}

#[test]
fn bad_units_are_reported_and_passed() {
    let long = "x".repeat(MAX_LINE_BYTES + 1);
    let many = "x<hi/>".repeat(MAX_LINE_BYTES + 1);
    let body = [
        unit("a", "b&unknown;"),
        unit("a", "b&#0;"),
        unit("a", "b\0"),
        unit("&#xD800;", "b"),
        unit(&long, "b"),
        unit(&many, "b"),
        "<tu/>\n".into(),
        "<tu><tuv xml:lang=\"en\"/><tuv xml:lang=\"de\"><seg/></tuv></tu>\n".into(),
        unit("", "b"),
        unit("last", "b"),
    ];
    let expected = [
        "x:2: an unknown entity &unknown;",
        "x:3: a NUL character in the target",
        "x:4: a NUL character in the target",
        "x:5: a character reference &#xD800; of no character",
        "x:6: a segment of more than 1048576 bytes",
        "x:7: a segment of more than 1048576 bytes",
        "x:8: no en",
        "x:9: no en",
        "10:  | b",
        "11: last | b",
    ];
    assert_eq!(units(&body.concat()), expected);
}

#[test]
fn what_is_not_utf8_is_one_bad_unit() {
    let body = unit("a\u{1}", "b") + &unit("c", "d");
    let mut bytes = format!("<tmx>\n{body}</tmx>").into_bytes();
    let place = bytes.iter().position(|byte| *byte == 1).unwrap();
    bytes[place] = 0xff;
    assert_eq!(file(&bytes), ["x:2: not valid UTF-8", "3: c | d"]);
}

#[test]
fn utf16_is_read_in_both_byte_orders() {
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-16\"?>\n<tmx>\n{}</tmx>",
        unit("ä😀", "日本").repeat(3000)
    );
    for unit in [u16::to_le_bytes, u16::to_be_bytes] {
        for mark in ["", "\u{feff}"] {
            let text = format!("{mark}{text}");
            let bytes: Vec<u8> = text.encode_utf16().flat_map(unit).collect();
            for bytes in [gzip(&bytes), bytes] {
                let items = file(&bytes);
                assert_eq!(items.len(), 3000);
                assert_eq!(items[2999], "3002: ä😀 | 日本");
            }
        }
    }
}

#[test]
fn another_encoding_is_refused_by_name() {
    let items = file(b"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><tmx></tmx>");
    assert_eq!(items, ["x: the encoding ISO-8859-1 is not supported"]);
}

#[test]
fn entities_of_a_dtd_are_not_expanded() {
    let mut bomb = String::from("<?xml version=\"1.0\"?>\n<!DOCTYPE tmx [\n<!ENTITY a0 \"ha\">\n");
    for i in 1..30 {
        let (name, before) = (format!("a{i}"), format!("&a{};", i - 1).repeat(10));
        bomb += &format!("<!ENTITY {name} \"{before}\">\n");
    }
    bomb += &format!("]>\n<tmx>\n{}{}</tmx>", unit("&a29;", "b"), unit("c", "d"));
    let expected = ["x:35: an unknown entity &a29;", "36: c | d"];
    assert_eq!(file(bomb.as_bytes()), expected);
}

#[test]
fn a_file_that_is_cut_or_is_no_tmx_is_an_error_after_its_units() {
    let whole = format!("<tmx>\n{}{}</tmx>", unit("a", "b"), unit("c", "d"));
    let cut = &whole[..whole.len() - 20];
    let items = file(cut.as_bytes());
    assert_eq!(items[0], "2: a | b");
    assert_eq!(items.len(), 2);
    assert!(
        items[1].starts_with("x: damaged TMX data after line "),
        "{items:?}"
    );
    for (other, problem) in [
        ("", "it has no <tmx> element"),
        ("just text\n", "it has no <tmx> element"),
        ("<tmx><a></b></tmx>", "damaged TMX data"),
        ("<tmx><tu", "damaged TMX data"),
    ] {
        let items = file(other.as_bytes());
        assert!(items[0].contains(problem), "{items:?}");
        assert_eq!(items.len(), 1);
    }
}

#[test]
fn text_or_elements_without_end_are_an_error_and_not_stored() {
    let text = gzip(format!("<tmx><tu>{}", "x".repeat(64 << 20)).as_bytes());
    let items = file(&text);
    assert!(
        items[0].contains("more than 16777216 bytes without a tag"),
        "{items:?}"
    );
    let deep = gzip(format!("<tmx>{}", "<a>".repeat(1 << 20)).as_bytes());
    let items = file(&deep);
    assert!(
        items[0].contains("too many elements inside each other"),
        "{items:?}"
    );
}

#[test]
fn a_unit_around_another_has_the_line_of_its_end() {
    let body = format!("<tu>\n{}</tu>\n{}", unit("a", "b"), unit("c", "d"));
    assert_eq!(units(&body), ["3: a | b", "x:4: no en", "5: c | d"]);
}

#[test]
fn a_long_name_of_an_entity_is_cut_in_its_error() {
    let items = units(&unit(&format!("&{};", "ä".repeat(100_000)), "b"));
    assert_eq!(
        items,
        [format!("x:2: an unknown entity &{}…;", "ä".repeat(60))]
    );
}
