//! The public interface of the crate.

mod added; // words and tags that are added to tokenizers
mod augment; // random changes of text
mod augmenter; // pairs of batches that are changed
mod byte_fallback; // characters as bytes
mod cache; // entries: when they are made, and when not
mod cache_damage; // entries that are not what was written
mod clean; // filters and their counts
mod compression; // gzip, zstd and xz, whole and damaged
mod config; // the [data] section and its messages
mod corpus; // files to pairs in memory
mod dataset; // pairs as ids, and pairs that are skipped
mod fixtures; // corpora and filters for the tests of other files
mod formats; // one corpus in every format, and bad lines
mod lines; // bytes to lines
mod mixture; // the shares of corpora, and stages
#[cfg(feature = "parquet")]
mod parquet; // files that pyarrow wrote
mod prepared; // corpora that are encoded from files
mod resolve; // paths and patterns to files
mod sampler; // batches, their order, and continuing from a position
mod sampling; // segmentations that are drawn
mod segmentations; // how often each segmentation is drawn
mod sentencepiece; // models of SentencePiece, and vocabularies of MarianMT
mod sources; // pictures and features from files
mod text_source; // a corpus as a stream of checked pairs
mod tmx; // translation memories
mod tokenizer; // text to ids and back
mod tokenizer_files; // tokenizers that other programs wrote
mod tokenizer_threads; // the same tokenizer on any number of threads

use attend_data::{Column, Columns, Corpus, Error, Format, Input, Pair, Result};
use fixtures::*;
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder with these files in it.
fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

/// An error message without the name of the folder.
fn message(error: &Error, folder: &TempDir) -> String {
    let place = format!("{}{}", folder.path().display(), std::path::MAIN_SEPARATOR);
    error.to_string().replace(&place, "")
}

fn prefix(folder: &TempDir, name: &str) -> PathBuf {
    folder.path().join(name)
}

fn strings(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| line.to_string()).collect()
}

/// A file that holds both sides, in English and German.
fn table(path: impl AsRef<Path>, format: Format) -> Input {
    Input::Table {
        path: path.as_ref().into(),
        format,
        columns: Columns {
            source: None,
            target: None,
            header: false,
            languages: ("en".into(), "de".into()),
        },
    }
}

/// The same file with other columns.
fn with_columns(mut input: Input, source: Column, target: Column) -> Input {
    if let Input::Table { columns, .. } = &mut input {
        (columns.source, columns.target) = (Some(source), Some(target));
    }
    input
}

/// All items, as `line: source | target` or an error message without the name of the folder.
fn items(input: &Input, folder: &TempDir) -> Vec<String> {
    let show = |item: Result<Pair>| match item {
        Ok(pair) => format!("{}: {} | {}", pair.line, pair.source, pair.target),
        Err(error) => message(&error, folder),
    };
    match input.open() {
        Ok(pairs) => pairs.map(show).collect(),
        Err(error) => vec![format!("not opened: {}", message(&error, folder))],
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    use lzma_rust2::{XzOptions, XzWriter};
    let mut encoder = XzWriter::new(Vec::new(), XzOptions::with_preset(1)).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A file of the formats' golden files.
fn golden(name: &str) -> PathBuf {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/formats");
    golden.join(name)
}

/// The pairs of the golden files.
fn golden_pairs() -> Vec<(String, String)> {
    let pairs = std::fs::read(golden("pairs.json")).unwrap();
    serde_json::from_slice(&pairs).unwrap()
}

/// The sentences of all pairs.
fn sentences(input: &Input) -> Result<Vec<(String, String)>> {
    let pairs = input.open()?;
    pairs
        .map(|pair| pair.map(|pair| (pair.source, pair.target)))
        .collect()
}

/// Forty pairs of different lengths, enough to train every kind of tokenizer.
fn corpus() -> Corpus {
    let nouns = [
        ("dog", "Hund"),
        ("house", "Haus"),
        ("tree", "Baum"),
        ("man", "Mann"),
    ];
    let verbs = [
        ("runs", "rennt"),
        ("sleeps", "schläft"),
        ("falls", "fällt"),
        ("sings loudly", "singt laut"),
        ("is over there in the garden", "ist da drüben im Garten"),
    ];
    let (mut source, mut target) = (Vec::new(), Vec::new());
    for (noun, nomen) in nouns {
        for (verb, wort) in verbs {
            source.push(format!("the {noun} {verb}."));
            target.push(format!("der {nomen} {wort}."));
            source.push(format!(
                "the big {noun} {verb}, and the small {noun} {verb}!"
            ));
            target.push(format!(
                "der große {nomen} {wort}, und der kleine {nomen} {wort}!"
            ));
        }
    }
    Corpus::new(source, target).unwrap()
}
