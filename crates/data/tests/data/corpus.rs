use crate::{folder, gzip, message, prefix};
use attend_data::{Corpus, Error, FilePair, PathPair, Paths};

#[test]
fn a_prefix_finds_plain_and_gzip_files_and_keeps_its_dots() {
    let gz = gzip(b"eins\nzwei\n");
    let dir = folder(&[("v1.2.en", b"one\ntwo\n"), ("v1.2.de.gz", &gz)]);
    let corpus = Corpus::read(&prefix(&dir, "v1.2").into(), "en", "de", &()).unwrap();
    assert_eq!(corpus.source, ["one", "two"]);
    assert_eq!(corpus.target, ["eins", "zwei"]);
}

#[test]
fn gzip_is_detected_by_content_not_by_name() {
    let dir = folder(&[("train.en.gz", b"plain\n"), ("train.de.gz", b"schlicht\n")]);
    let corpus = Corpus::read(&prefix(&dir, "train").into(), "en", "de", &()).unwrap();
    assert_eq!(corpus.source, ["plain"]);
}

#[test]
fn several_corpora_are_read_one_after_another() {
    let dir = folder(&[
        ("a.en", b"one\n"),
        ("a.de", b"eins\n"),
        ("x", b"two\n"),
        ("y", b"zwei\n"),
    ]);
    let paths = Paths::Many(vec![
        PathPair::Prefix(prefix(&dir, "a")),
        PathPair::Files(FilePair {
            source: prefix(&dir, "x"),
            target: prefix(&dir, "y"),
        }),
    ]);
    let corpus = Corpus::read(&paths, "en", "de", &()).unwrap();
    assert_eq!(corpus.source, ["one", "two"]);
    assert_eq!(corpus.target, ["eins", "zwei"]);
}

#[test]
fn windows_line_endings_on_one_side_change_nothing() {
    let dir = folder(&[("t.en", b"one\r\ntwo\r\n"), ("t.de", b"eins\nzwei\n")]);
    let corpus = Corpus::read(&prefix(&dir, "t").into(), "en", "de", &()).unwrap();
    assert_eq!(corpus.source, ["one", "two"]);
    assert_eq!(corpus.target, ["eins", "zwei"]);
}

#[test]
fn unequal_line_counts_are_refused_with_both_counts() {
    let dir = folder(&[("train.en", b"1\n2\n3\n"), ("train.de", b"1\n2\n")]);
    let error = Corpus::read(&prefix(&dir, "train").into(), "en", "de", &()).unwrap_err();
    assert_eq!(
        message(&error, &dir),
        "train.en has 3 lines but train.de has 2"
    );
    assert!(error.hint().unwrap().contains("line n"));
}

#[test]
fn a_blank_last_line_counts() {
    let dir = folder(&[("train.en", b"1\n2\n\n"), ("train.de", b"1\n2\n")]);
    let error = Corpus::read(&prefix(&dir, "train").into(), "en", "de", &()).unwrap_err();
    assert_eq!(
        message(&error, &dir),
        "train.en has 3 lines but train.de has 2"
    );
    let error = Corpus::read(&prefix(&dir, "train").into(), "de", "en", &()).unwrap_err();
    assert_eq!(
        message(&error, &dir),
        "train.de has 2 lines but train.en has 3"
    );
}

#[test]
fn a_bad_line_is_an_error() {
    let dir = folder(&[("t.en", b"1\n2\0\n3\n"), ("t.de", b"1\n2\n3\n")]);
    let error = Corpus::read(&prefix(&dir, "t").into(), "en", "de", &()).unwrap_err();
    assert_eq!(message(&error, &dir), "t.en:2: a NUL character");
    assert!(error.hint().unwrap().contains("data.bad_lines"));
}

#[test]
fn unequal_counts_in_two_corpora_do_not_cancel_each_other() {
    let dir = folder(&[
        ("a.en", b"1\n2\n"),
        ("a.de", b"1\n"),
        ("b.en", b"1\n"),
        ("b.de", b"1\n2\n"),
    ]);
    let paths = ["a", "b"].map(|name| PathPair::Prefix(prefix(&dir, name)));
    let error = Corpus::read(&Paths::Many(paths.into()), "en", "de", &()).unwrap_err();
    assert_eq!(message(&error, &dir), "a.en has 2 lines but a.de has 1");
}

#[test]
fn a_missing_file_is_named_with_all_names_that_were_tried() {
    let dir = folder(&[("train.en", b"1\n")]);
    let error = Corpus::read(&prefix(&dir, "train").into(), "en", "de", &()).unwrap_err();
    assert_eq!(
        message(&error, &dir),
        "no such file: train.de (nor train.de.gz, train.de.zst, train.de.xz)"
    );
    let relative = Corpus::read(&"nowhere/train".into(), "en", "de", &()).unwrap_err();
    assert!(relative.hint().unwrap().contains("relative to the folder"));
}

#[test]
fn empty_files_are_an_error_that_names_them() {
    let dir = folder(&[("train.en", b""), ("train.de", b"")]);
    let error = Corpus::read(&prefix(&dir, "train").into(), "en", "de", &()).unwrap_err();
    assert_eq!(message(&error, &dir), "no sentences in train.en, train.de");
    assert!(matches!(
        Corpus::new(vec![], vec![]),
        Err(Error::EmptyCorpus { .. })
    ));
}

#[test]
fn a_pair_with_an_empty_side_stays_in_the_corpus() {
    let dir = folder(&[("t.en", b"one\n\nthree\n"), ("t.de", b"eins\nzwei\n  \n")]);
    let corpus = Corpus::read(&prefix(&dir, "t").into(), "en", "de", &()).unwrap();
    assert_eq!(corpus.len(), 3);
    assert_eq!(corpus.target[2], "  ");
}
