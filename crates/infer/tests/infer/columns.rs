use std::fs;

use crate::command::{assert_refused, infer};
use crate::fixture::with_bundle;

const TABLE: &str = "id\ten\tde\n1\ta dog runs\tein Hund rennt\n2\t\t\n3\tdogs\tHunde\n";

#[test]
fn a_column_of_a_table_is_a_file_of_lines() {
    let (folder, _) = with_bundle();
    let folder = folder.path();
    fs::write(folder.join("test.tsv"), TABLE).unwrap();
    fs::write(folder.join("test.en"), "a dog runs\n\ndogs\n").unwrap();
    fs::write(folder.join("test.de"), "ein Hund rennt\n\nHunde\n").unwrap();
    fs::write(folder.join("bare.tsv"), TABLE.split_once('\n').unwrap().1).unwrap();
    let json = "{\"en\": \"a dog runs\"}\n{\"en\": \"\"}\n{\"en\": \"dogs\"}\n";
    fs::write(folder.join("test.jsonl"), json).unwrap();
    let run = |args: &[&str]| {
        let ran = infer(folder, args, b"");
        assert_eq!((ran.code, &*ran.stderr), (0, ""), "{args:?}");
        ran.stdout
    };
    let plain = run(&["translate", "bundle", "test.en"]);
    assert_eq!(plain.lines().count(), 3);
    for input in ["test.tsv:en", "bare.tsv:1", "test.jsonl:en"] {
        assert_eq!(run(&["translate", "bundle", input]), plain, "{input}");
    }
    for command in ["evaluate", "score"] {
        let plain = run(&[command, "bundle", "--src", "test.en", "--ref", "test.de"]);
        let columns = run(&[
            command,
            "bundle",
            "--src",
            "test.tsv:en",
            "--ref",
            "test.tsv:de",
        ]);
        assert_eq!(columns, plain, "{command}");
    }
}

#[test]
fn a_column_that_is_not_there_and_a_table_that_would_be_overwritten_are_errors() {
    let (folder, _) = with_bundle();
    let folder = folder.path();
    fs::write(folder.join("test.tsv"), TABLE).unwrap();
    let ran = infer(folder, &["translate", "bundle", "test.tsv:fr"], b"");
    assert_refused(&ran, "test.tsv:1: no column \"fr\"", "its columns are");
    let args = ["translate", "bundle", "test.tsv:en", "-o", "test.tsv"];
    let ran = infer(folder, &args, b"");
    assert_refused(
        &ran,
        "test.tsv: is both input and output",
        "give -o another file",
    );
    assert_eq!(fs::read_to_string(folder.join("test.tsv")).unwrap(), TABLE);
    let ran = infer(folder, &["translate", "bundle", "no.tsv:en"], b"");
    assert_ne!(ran.code, 0);
    assert!(ran.stderr.contains("no.tsv"), "{}", ran.stderr);
}
