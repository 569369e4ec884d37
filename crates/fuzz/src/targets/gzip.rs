use std::io::{Cursor, Write};

use attend_data::Lines;
use flate2::Compression;
use flate2::write::GzEncoder;

/// A compressed file as it is, and the same bytes in members of our own.
pub(super) fn run(bytes: &[u8]) {
    read(bytes);
    if is_compressed(bytes) {
        return;
    }
    let (first, second) = bytes.split_at(bytes.len() / 3);
    let compressed = [compress(first), compress(second)].concat();
    let (Some(plain), Some(unpacked)) = (lines(bytes.to_vec()), lines(compressed)) else {
        panic!("cannot read from memory");
    };
    let plain = plain.map(Result::ok);
    assert!(unpacked.map(Result::ok).eq(plain), "the lines differ");
}

/// Reads a file of any compression to its end, or for a while: a small file can hold many lines.
pub(super) fn read(bytes: &[u8]) {
    let Some(lines) = lines(bytes.to_vec()) else {
        panic!("cannot read from memory");
    };
    let mut ended = false;
    for line in lines.take(1 << 22) {
        assert!(!ended, "a line after an error");
        ended = line.is_err_and(|error| !error.is_bad_line());
    }
}

/// Whether the first bytes are those of gzip, zstd or xz.
pub(super) fn is_compressed(bytes: &[u8]) -> bool {
    let is_skippable = matches!(bytes, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]);
    let magic: [&[u8]; 3] = [b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0"];
    is_skippable || magic.iter().any(|magic| bytes.starts_with(magic))
}

fn lines(file: Vec<u8>) -> Option<Lines> {
    Lines::new(Cursor::new(file), "corpus.gz").ok()
}

fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory can be written");
    encoder.finish().expect("memory can be written")
}
