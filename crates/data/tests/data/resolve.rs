use crate::{folder, gzip, message, prefix};
use attend_data::{Column, FilePair, Format, Input, PathPair, Paths, Patterns, Table};
use tempfile::TempDir;

fn at(dir: &TempDir, path: &str) -> Table {
    Table {
        path: Patterns::One(dir.path().join(path)),
        source: None,
        target: None,
        format: None,
        header: false,
    }
}

fn resolve(table: Table) -> attend_data::Result<Vec<Input>> {
    Paths::One(PathPair::Table(table)).resolve("en", "de")
}

/// The names of the files, and their format if it is not text.
fn names(inputs: &[Input], dir: &TempDir) -> Vec<String> {
    let show = |input: &Input| {
        let files = input.files().into_iter();
        let names = files.map(|p| p.strip_prefix(dir.path()).unwrap().display().to_string());
        let names = names.collect::<Vec<_>>().join(" ");
        match input {
            Input::Text(_) => names,
            Input::Table { format, .. } => format!("{names}: {format}"),
        }
    };
    inputs.iter().map(show).collect()
}

/// The error and its hint.
fn error(paths: impl Into<Paths>, dir: &TempDir) -> (String, String) {
    let error = paths.into().resolve("en", "de").unwrap_err();
    let place = format!("{}/", dir.path().display());
    let hint = error.hint().unwrap_or_default().replace(&place, "");
    (message(&error, dir), hint)
}

fn of_table(table: Table) -> Paths {
    Paths::One(PathPair::Table(table))
}

#[test]
fn the_extension_tells_the_format() {
    let files = [
        "a.tsv",
        "a.TAB.gz",
        "a.jsonl",
        "b.ndjson.zst",
        "a.parquet",
        "x.tmx.xz",
    ];
    let dir = folder(&files.map(|name| (name, &b""[..])));
    let formats = [
        Format::Tsv,
        Format::Tsv,
        Format::Jsonl,
        Format::Jsonl,
        Format::Parquet,
        Format::Tmx,
    ];
    for (file, expected) in files.into_iter().zip(formats) {
        let inputs = resolve(at(&dir, file)).unwrap();
        assert!(matches!(inputs[..], [Input::Table { format, .. }] if format == expected));
    }
}

#[test]
fn a_pattern_finds_shards_in_the_order_of_their_names() {
    let names_of = [
        "n/b.jsonl",
        "n/a.jsonl",
        "n/c.jsonl",
        "n/.d.jsonl",
        "n/x.txt",
    ];
    let dir = folder(&[]);
    std::fs::create_dir(dir.path().join("n")).unwrap();
    std::fs::create_dir(dir.path().join("n/folder.jsonl")).unwrap();
    for name in names_of {
        std::fs::write(dir.path().join(name), "").unwrap();
    }
    let inputs = resolve(at(&dir, "n/*.jsonl")).unwrap();
    let expected = [
        "n/a.jsonl: JSON lines",
        "n/b.jsonl: JSON lines",
        "n/c.jsonl: JSON lines",
    ];
    assert_eq!(names(&inputs, &dir), expected);
    // Without the extension in the pattern, the files tell the format.
    let inputs = resolve(at(&dir, "n/?.json*")).unwrap();
    assert_eq!(names(&inputs, &dir), expected);
    // With `format`, the extension does not matter.
    let any = Table {
        format: Some(Format::Tsv),
        ..at(&dir, "n/[ax].*")
    };
    let expected = ["n/a.jsonl: TSV", "n/x.txt: TSV"];
    assert_eq!(names(&resolve(any).unwrap(), &dir), expected);

    let (message, _) = error(of_table(at(&dir, "n/*.tsv")), &dir);
    assert_eq!(message, "no file matches n/*.tsv");
    let (message, _) = error(of_table(at(&dir, "n/z.tsv")), &dir);
    assert_eq!(message, "no such file: n/z.tsv");
}

#[test]
fn a_path_that_exists_is_no_pattern() {
    let dir = folder(&[
        ("a[1].tsv", b""),
        ("a1.tsv", b""),
        ("b*.en", b""),
        ("b*.de", b""),
        ("bc.en", b""),
    ]);
    let inputs = resolve(at(&dir, "a[1].tsv")).unwrap();
    assert_eq!(names(&inputs, &dir), ["a[1].tsv: TSV"]);
    let inputs = resolve(at(&dir, "b*")).unwrap();
    assert_eq!(names(&inputs, &dir), ["b*.en b*.de"]);
}

#[test]
fn a_path_without_a_known_extension_is_a_prefix() {
    let gz = gzip(b"");
    let files: [(&str, &[u8]); 6] = [
        ("news.1.en", b""),
        ("news.1.de.zst", &gz),
        ("news.2.en.gz", &gz),
        ("news.2.en", b""),
        ("news.2.de.xz", &gz),
        ("tsv.en", b""),
    ];
    let dir = folder(&files);
    let first = "news.1.en news.1.de.zst";
    let second = "news.2.en news.2.de.xz";
    assert_eq!(names(&resolve(at(&dir, "news.1")).unwrap(), &dir), [first]);
    assert_eq!(
        names(&resolve(at(&dir, "news.*")).unwrap(), &dir),
        [first, second]
    );
    let list = Table {
        path: Patterns::Many(vec![prefix(&dir, "news.2"), prefix(&dir, "news.?")]),
        format: Some(Format::Text),
        ..at(&dir, "")
    };
    assert_eq!(
        names(&resolve(list).unwrap(), &dir),
        [second, first, second]
    );
    // An extension needs something before it.
    let (message, _) = error(of_table(at(&dir, "tsv")), &dir);
    assert!(message.starts_with("no such file: tsv.de"), "{message}");
    let (message, hint) = error(of_table(at(&dir, "old.*")), &dir);
    assert_eq!(message, "no file matches old.*");
    assert!(hint.contains("format"));
}

#[test]
fn keys_that_do_not_fit_the_format_are_refused() {
    let dir = folder(&[
        ("a.tsv", b""),
        ("a.jsonl", b""),
        ("t.en", b""),
        ("t.de", b""),
    ]);
    let name = || Some(Column::Name("x".into()));
    let cases = [
        (
            Table {
                source: name(),
                ..at(&dir, "t")
            },
            "t is parallel text: it has no columns",
            "two files",
        ),
        (
            Table {
                target: name(),
                ..at(&dir, "a.tsv")
            },
            "a.tsv is TSV: its columns have no names",
            "header = true",
        ),
        (
            Table {
                source: Some(Column::Number(0)),
                ..at(&dir, "a.jsonl")
            },
            "a.jsonl is JSON lines: its columns have no numbers",
            "give names",
        ),
        (
            Table {
                header: true,
                ..at(&dir, "a.jsonl")
            },
            "a.jsonl is JSON lines: `header` belongs to TSV",
            "leave `header` out",
        ),
    ];
    for (table, problem, fix) in cases {
        let (message, hint) = error(of_table(table), &dir);
        assert_eq!(message, problem);
        assert!(hint.contains(fix), "{hint}");
    }
}

#[test]
fn a_prefix_that_is_a_file_gets_a_hint() {
    let dir = folder(&[
        ("train.en", b""),
        ("train.de", b""),
        ("x.tsv", b""),
        ("x.jsonl.gz", b""),
        ("all.txt", b""),
    ]);
    let (message, hint) = error(prefix(&dir, "train.en"), &dir);
    let tried = "(nor train.en.en.gz, train.en.en.zst, train.en.en.xz)";
    assert_eq!(message, format!("no such file: train.en.en {tried}"));
    assert!(hint.starts_with("give the prefix `train`"), "{hint}");
    let (_, hint) = error(prefix(&dir, "train.de"), &dir);
    assert!(hint.starts_with("give the prefix `train`"), "{hint}");
    let (_, hint) = error(prefix(&dir, "x.tsv"), &dir);
    assert_eq!(hint, "write { path = \"x.tsv\", source = 0, target = 1 }");
    let (_, hint) = error(prefix(&dir, "x.jsonl.gz"), &dir);
    assert_eq!(hint, "write { path = \"x.jsonl.gz\" }");
    let (_, hint) = error(prefix(&dir, "all.txt"), &dir);
    assert!(
        hint.starts_with("all.txt is a file: give both files"),
        "{hint}"
    );
}

#[test]
fn two_files_of_which_one_is_a_table_are_refused() {
    let dir = folder(&[("a.txt", b""), ("b.tsv.gz", b"")]);
    let files = FilePair {
        source: prefix(&dir, "a.txt"),
        target: prefix(&dir, "b.tsv.gz"),
    };
    let (message, hint) = error(files, &dir);
    assert_eq!(message, "b.tsv.gz is TSV, not text");
    assert_eq!(
        hint,
        "write { path = \"b.tsv.gz\", source = 0, target = 1 }"
    );
}

#[test]
fn folders_and_pipes_are_refused_before_they_are_opened() {
    let dir = folder(&[("t.de", b""), ("p.de", b"")]);
    for name in ["t.en", "g.tsv"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    let pipe = |name| {
        let made = std::process::Command::new("mkfifo")
            .arg(dir.path().join(name))
            .status();
        assert!(made.unwrap().success());
    };
    let folder = ("is a folder, not a file", "give a file");
    let other = ("is a pipe or a device, not a file", "write it to a file");
    let check = |paths: Paths, name: &str, (problem, hint): (&str, &str)| {
        let (message, full_hint) = error(paths, &dir);
        assert_eq!(message, format!("{name} {problem}"));
        assert!(full_hint.contains(hint), "{full_hint}");
    };
    check(prefix(&dir, "t").into(), "t.en", folder);
    check(of_table(at(&dir, "g.tsv")), "g.tsv", folder);
    pipe("p.en");
    pipe("p.tsv");
    check(prefix(&dir, "p").into(), "p.en", other);
    check(of_table(at(&dir, "p.tsv")), "p.tsv", other);
    check(of_table(at(&dir, "p*.tsv")), "p.tsv", other); // a pattern passes folders only
    let files = FilePair {
        source: "/dev/null".into(),
        target: dir.path().join("t.de"),
    };
    check(files.into(), "/dev/null", other);
}

#[test]
fn an_empty_path_is_refused() {
    for path in [
        Patterns::One("".into()),
        Patterns::Many(vec!["".into()]),
        Patterns::Many(vec![]),
    ] {
        let table = Table {
            path,
            ..at(&folder(&[]), "")
        };
        let message = resolve(table).unwrap_err().to_string();
        assert!(message.ends_with("is empty"), "{message}");
    }
}
