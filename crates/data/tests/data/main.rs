//! The public interface of the crate.

mod added; // words and tags that are added to tokenizers
mod augment; // random changes of text
mod augmenter; // pairs of batches that are changed
mod cache; // entries: when they are made, and when not
mod cache_damage; // entries that are not what was written
mod clean; // filters and their counts
mod config; // the [data] section and its messages
mod corpus; // two files to pairs
mod dataset; // pairs as ids, and pairs that are skipped
mod fixtures; // corpora and filters for the tests of other files
mod lines; // bytes to lines
mod mixture; // the shares of corpora, and stages
mod prepared; // corpora that are encoded from files
mod sampler; // batches, their order, and continuing from a position
mod sentencepiece; // models of SentencePiece, and vocabularies of MarianMT
mod text_source; // a corpus as a stream of checked pairs
mod tokenizer; // text to ids and back
mod tokenizer_files; // tokenizers that other programs wrote

use attend_data::{Corpus, Error};
use fixtures::*;
use std::path::PathBuf;
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
