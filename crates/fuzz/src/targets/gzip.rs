use std::io::{Cursor, Write};

use attend_data::Lines;
use flate2::Compression;
use flate2::write::GzEncoder;

/// A compressed file as it is, and the same bytes in members of our own.
pub(super) fn run(bytes: &[u8]) {
    // Counted and not kept: a small file can hold many lines.
    let _ = lines(bytes.to_vec()).map(|lines| lines.filter(Result::is_ok).count());
    if bytes.starts_with(&[0x1f, 0x8b]) {
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

fn lines(file: Vec<u8>) -> Option<Lines> {
    Lines::new(Cursor::new(file), "corpus.gz").ok()
}

fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory can be written");
    encoder.finish().expect("memory can be written")
}
