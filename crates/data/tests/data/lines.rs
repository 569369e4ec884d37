use crate::{folder, gzip, message, strings, xz, zstd};
use attend_data::{Error, Lines, MAX_LINE_BYTES, Result};
use std::path::Path;

fn read_lines(path: impl AsRef<Path>) -> Result<Vec<String>> {
    Lines::open(path)?.collect()
}

fn check(bytes: &[u8], expected: &[&str]) {
    for bytes in [bytes.to_vec(), gzip(bytes), zstd(bytes), xz(bytes)] {
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
fn the_lines_go_on_after_a_bad_line() {
    let long = "x".repeat(3 * MAX_LINE_BYTES);
    let text = [b"a\n\xff\nb\n".as_slice(), long.as_bytes(), b"\nc"].concat();
    for bytes in [text.clone(), gzip(&text), zstd(&text), xz(&text)] {
        let lines = Lines::new(std::io::Cursor::new(bytes), "text").unwrap();
        let lines: Vec<String> = lines
            .map(|line| line.unwrap_or_else(|error| error.to_string()))
            .collect();
        let expected = [
            "a",
            "text:2: not valid UTF-8",
            "b",
            "text:4: the line has more than 1048576 bytes",
            "c",
        ];
        assert_eq!(lines, expected);
    }
}

#[test]
fn a_line_that_is_too_long_at_the_end_is_the_last_one() {
    for extra in [1, 2, 3, 4, 5, MAX_LINE_BYTES] {
        for start in ["", "\u{feff}", "first\n"] {
            let text = format!("{start}{}", "x".repeat(MAX_LINE_BYTES + extra));
            let lines = Lines::new(std::io::Cursor::new(text), "text").unwrap();
            let errors = lines.filter(|line| line.is_err()).count();
            assert_eq!(errors, 1, "{extra} {start:?}");
        }
    }
}

#[test]
fn the_rest_of_an_endless_line_is_not_stored() {
    let line = std::io::Read::take(std::io::repeat(b'x'), 1 << 30);
    let text = std::io::Read::chain(line, &b"\nb\n"[..]);
    let mut lines = Lines::new(text, "text").unwrap();
    assert!(matches!(
        lines.next(),
        Some(Err(Error::LongLine { line: 1, .. }))
    ));
    assert_eq!(lines.next().unwrap().unwrap(), "b");
    assert!(lines.next().is_none());
}

#[test]
fn there_are_no_lines_after_a_read_that_failed() {
    struct Broken;
    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("unplugged"))
        }
    }
    let text = std::io::Read::chain(&b"a\nb"[..], Broken);
    let mut lines = Lines::new(text, "text").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "a");
    assert!(matches!(lines.next(), Some(Err(Error::Io { .. }))));
    assert!(lines.next().is_none());
}

#[test]
fn a_short_line_is_given_before_more_is_typed() {
    struct Terminal(Vec<&'static [u8]>);
    impl std::io::Read for Terminal {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            assert!(!self.0.is_empty(), "read too far");
            let typed = self.0.remove(0);
            buffer[..typed.len()].copy_from_slice(typed);
            Ok(typed.len())
        }
    }
    for typed in [&b"\n"[..], b"a\n", b"(\n", b"P*\n", b"\x1f\n"] {
        let mut lines = Lines::new(Terminal(vec![typed]), "terminal").unwrap();
        assert_eq!(lines.next().unwrap().unwrap().len(), typed.len() - 1);
    }
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
