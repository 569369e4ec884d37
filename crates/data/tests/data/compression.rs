use crate::{folder, golden, golden_pairs, gzip, message, sentences, table, xz, zstd};
use attend_data::{Error, Format, Lines};
use std::io::Cursor;

type Compress = fn(&[u8]) -> Vec<u8>;

const KINDS: [(&str, Compress); 3] = [("gzip", gzip), ("zstd", zstd), ("xz", xz)];

fn text() -> String {
    (0..5000).map(|i| format!("{}\n", i * 7919)).collect()
}

fn lines(bytes: Vec<u8>) -> Lines {
    Lines::new(Cursor::new(bytes), "text").unwrap()
}

/// The lines before the damage, and the error.
fn damage(bytes: &[u8]) -> (u64, Error) {
    let dir = folder(&[("text", bytes)]);
    let mut lines = Lines::open(dir.path().join("text")).unwrap();
    let mut whole = 0;
    loop {
        match lines.next().expect("no error") {
            Ok(_) => whole += 1,
            Err(error) => {
                assert!(lines.next().is_none(), "lines after the damage");
                assert!(message(&error, &dir).starts_with("text: "));
                return (whole, error);
            }
        }
    }
}

#[test]
fn members_frames_and_streams_are_read_to_the_end() {
    for (kind, compress) in KINDS {
        let bytes = [compress(b"a\nb"), compress(b""), compress(b"c\nd\n")].concat();
        let lines: Result<Vec<_>, _> = lines(bytes).collect();
        assert_eq!(lines.unwrap(), ["a", "bc", "d"], "{kind}");
    }
}

#[test]
fn what_other_programs_compressed_is_read() {
    let names = [
        "one.jsonl.zst",
        "frames.jsonl.zst",
        "long.jsonl.zst",
        "one.jsonl.xz",
        "streams.jsonl.xz",
        "filters.jsonl.xz",
        "one.jsonl.gz",
        "members.jsonl.gz",
    ];
    for name in names {
        let pairs = sentences(&table(golden(name), Format::Jsonl));
        assert_eq!(pairs.unwrap(), golden_pairs(), "{name}");
    }
}

#[test]
fn a_truncated_file_is_an_error_that_names_it_its_kind_and_the_last_line() {
    for (kind, compress) in KINDS {
        let whole = compress(text().as_bytes());
        for size in [7, 20, whole.len() / 2, whole.len() - 3, whole.len() - 1] {
            let (read, error) = damage(&whole[..size]);
            let Error::Damaged {
                kind: named, line, ..
            } = &error
            else {
                panic!("{kind} {size}: {error}");
            };
            assert_eq!((*named, *line), (kind, read), "{size}");
            let place = format!("text: damaged {kind} data after line {line}: ");
            assert!(error.to_string().contains(&place), "{error}");
            assert!(error.hint().unwrap().contains(&format!("{kind} -t ")));
        }
    }
}

#[test]
fn a_wrong_checksum_is_an_error() {
    for name in ["one.jsonl.gz", "one.jsonl.zst", "one.jsonl.xz"] {
        let whole = std::fs::read(golden(name)).unwrap();
        // The last bytes of gzip are its checksum and size; those of zstd its checksum; those of xz its footer.
        let place = whole.len() - if name.ends_with("gz") { 8 } else { 4 };
        let mut wrong = whole.clone();
        wrong[place] ^= 1;
        assert!(matches!(damage(&wrong).1, Error::Damaged { .. }), "{name}");
    }
}

#[test]
fn other_data_after_the_end_is_an_error() {
    for (kind, compress) in KINDS {
        let junk = [compress(b"a\nb\n"), b"other data that follows".to_vec()].concat();
        let (read, error) = damage(&junk);
        assert!(matches!(error, Error::Damaged { .. }), "{kind}: {error}");
        assert_eq!(read, 2, "{kind}");
    }
}

#[test]
fn every_changed_byte_ends_in_lines_or_one_error() {
    for (_, compress) in KINDS {
        let whole = compress(b"one line\nand another line, and a line\n");
        for place in 0..whole.len() {
            for bit in [1, 16, 128] {
                let mut changed = whole.clone();
                changed[place] ^= bit;
                assert!(lines(changed).count() < 1000);
            }
        }
    }
}

#[test]
fn a_small_file_with_many_lines_is_read_line_by_line() {
    for (kind, compress) in KINDS {
        let bomb = compress(&vec![b'\n'; 20 << 20]);
        assert!(bomb.len() < 1 << 20, "{kind}: {}", bomb.len());
        assert_eq!(lines(bomb).flatten().count(), 20 << 20, "{kind}");
    }
}

#[test]
fn a_window_that_does_not_fit_into_memory_is_refused() {
    // A frame header that asks for a window of 2 GiB, which `zstd --long=31` writes.
    let frame = b"\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00";
    let (_, error) = damage(frame);
    assert!(
        error.to_string().contains("damaged zstd data after line 0"),
        "{error}"
    );
}

#[test]
fn a_file_that_is_shorter_than_the_magic_numbers_is_text() {
    for text in ["(", "P", "P*M", "\u{1f}"] {
        let lines: Result<Vec<_>, _> = lines(text.into()).collect();
        assert_eq!(lines.unwrap(), [text]);
    }
}
