use crate::{folder, message, strings};
use attend_data::{Error, Lines, MAX_LINE_BYTES, Result};
use flate2::{Compression, write::GzEncoder};
use std::io::Write;
use std::path::Path;

fn read_lines(path: impl AsRef<Path>) -> Result<Vec<String>> {
    Lines::open(path)?.collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn check(bytes: &[u8], expected: &[&str]) {
    for bytes in [bytes.to_vec(), gzip(bytes)] {
        let dir = folder(&[("text", &bytes)]);
        let lines = read_lines(dir.path().join("text")).unwrap();
        assert_eq!(lines, strings(expected), "{bytes:?}");
    }
}

fn error(bytes: &[u8]) -> (Error, String) {
    let dir = folder(&[("text", bytes)]);
    let error = read_lines(dir.path().join("text")).unwrap_err();
    let message = message(&error, &dir);
    (error, message)
}

#[test]
fn a_line_ending_at_the_end_adds_no_line() {
    check(b"", &[]);
    check(b"a", &["a"]);
    check(b"a\n", &["a"]);
    check(b"a\nb", &["a", "b"]);
    check(b"a\nb\n", &["a", "b"]);
    check(b"\n", &[""]);
    check(b"\n\n", &["", ""]);
    check(b"a\n\nb\n", &["a", "", "b"]);
}

#[test]
fn one_carriage_return_before_a_line_feed_is_removed() {
    check(b"a\r\nb\r\n", &["a", "b"]);
    check(b"a\r\r\n", &["a\r"]);
    check(b"a\rb\n", &["a\rb"]);
    check(b"a\r", &["a"]);
    check(b"\r\n\r\n", &["", ""]);
}

#[test]
fn a_byte_order_mark_is_removed_at_the_start_of_a_file_only() {
    check("\u{feff}a\nb\n".as_bytes(), &["a", "b"]);
    check("\u{feff}\u{feff}a".as_bytes(), &["\u{feff}a"]);
    check("a\n\u{feff}b".as_bytes(), &["a", "\u{feff}b"]);
    check("\u{feff}\nb".as_bytes(), &["", "b"]);
    check("\u{feff}".as_bytes(), &[]);
}

#[test]
fn only_a_line_feed_ends_a_line() {
    let odd = "a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f\0g\rh\u{1c}i";
    check(format!("{odd}\n{odd}\n").as_bytes(), &[odd, odd]);
}

#[test]
fn concatenated_gzip_members_are_read_to_the_end() {
    let mut bytes = gzip(b"a\nb");
    bytes.extend(gzip(b"c\nd\n"));
    let dir = folder(&[("text", &bytes)]);
    let lines = read_lines(dir.path().join("text")).unwrap();
    assert_eq!(lines, ["a", "bc", "d"]);
}

#[test]
fn a_truncated_gzip_file_is_an_error_that_names_it() {
    let text: String = (0..5000).map(|i| format!("{}\n", i * 7919)).collect();
    let whole = gzip(text.as_bytes());
    for size in [5, 20, whole.len() / 2, whole.len() - 9, whole.len() - 1] {
        let (error, message) = error(&whole[..size]);
        assert!(
            matches!(error, Error::DamagedGzip { .. }),
            "{size}: {error}"
        );
        assert!(message.starts_with("text: damaged gzip data after line "));
        assert!(error.hint().unwrap().contains("gzip -t"));
    }
}

#[test]
fn a_gzip_file_with_a_wrong_checksum_or_other_data_after_it_is_an_error() {
    let mut wrong = gzip(b"a\nb\n");
    let crc = wrong.len() - 8;
    wrong[crc] ^= 1;
    assert!(matches!(error(&wrong).0, Error::DamagedGzip { .. }));

    let mut junk = gzip(b"a\nb\n");
    junk.extend(b"junk that is no gzip member");
    assert!(matches!(error(&junk).0, Error::DamagedGzip { .. }));
}

#[test]
fn invalid_utf8_is_an_error_with_file_and_line() {
    let (error, message) = error(b"good\n\xc3\xa4 good\nbad \xc3\nnever read\n");
    assert_eq!(message, "text:3: not valid UTF-8");
    assert!(error.hint().unwrap().contains("iconv"));
}

#[test]
fn utf16_is_an_error_in_line_1() {
    let (_, message) = error(b"\xff\xfea\0\n\0");
    assert_eq!(message, "text:1: not valid UTF-8");
}

#[test]
fn a_line_that_is_too_long_is_an_error() {
    let longest = "x".repeat(MAX_LINE_BYTES);
    check(format!("{longest}\r\na\n").as_bytes(), &[&longest, "a"]);

    let endless = Lines::new(std::io::repeat(b'x'), "stdin").unwrap().next();
    let error = endless.unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "stdin:1: the line has more than 1048576 bytes"
    );
    assert!(error.hint().unwrap().contains("one sentence on each line"));

    let bomb = gzip(&vec![b'x'; 64 << 20]);
    assert!(matches!(
        self::error(&bomb).0,
        Error::LongLine { line: 1, .. }
    ));
}

#[test]
fn there_are_no_lines_after_an_error() {
    let mut lines = Lines::new(&b"a\n\xff\nb\n"[..], "text").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "a");
    assert!(lines.next().unwrap().is_err());
    assert!(lines.next().is_none());
}

#[test]
fn a_missing_file_is_named() {
    let dir = folder(&[]);
    let error = read_lines(dir.path().join("text")).unwrap_err();
    assert_eq!(message(&error, &dir), "no such file: text");
}

#[test]
fn a_folder_in_place_of_a_file_is_an_error_that_names_it() {
    let dir = folder(&[]);
    let error = read_lines(dir.path()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains(&dir.path().display().to_string())
    );
}
