use std::io::Cursor;

use attend_data::{Columns, Error, Format, MAX_LINE_BYTES};

/// Columns that are separated by tabs, without names and with names.
pub(super) fn run(bytes: &[u8]) {
    for header in [false, true] {
        check(Format::Tsv, header, bytes);
    }
}

/// Reads a file of some format to its end, or for a while.
pub(super) fn check(format: Format, header: bool, bytes: &[u8]) {
    let columns = Columns {
        source: None,
        target: None,
        header,
        languages: ("en".into(), "de".into()),
    };
    let file = Cursor::new(bytes.to_vec());
    let Ok(pairs) = columns.read(format, file, "corpus") else {
        return;
    };
    let (mut ended, mut before) = (false, 0);
    for item in pairs.take(1 << 20) {
        assert!(!ended, "a pair after an error");
        match item {
            Ok(pair) => {
                assert!(pair.line > 0 && pair.line >= before, "places go back");
                before = pair.line;
                for text in [pair.source, pair.target] {
                    assert!(!text.contains(['\0', '\n']), "not one line");
                    assert!(text.len() <= MAX_LINE_BYTES, "too long");
                }
            }
            Err(error) => {
                ended = !error.is_bad_line();
                assert!(error.hint().is_some() || matches!(error, Error::Io { .. }));
            }
        }
    }
}
