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
mod lines; // bytes to lines
mod mixture; // the shares of corpora, and stages
mod prepared; // corpora that are encoded from files
mod sampler; // batches, their order, and continuing from a position
mod sentencepiece; // models of SentencePiece, and vocabularies of MarianMT
mod text_source; // a corpus as a stream of checked pairs
mod tokenizer; // text to ids and back
mod tokenizer_files; // tokenizers that other programs wrote

use attend_data::{
    BadLines, CleanConfig, Cleaner, Corpus, Dataset, Error, FilePair, HeldOut, Input, Progress,
    Task, TextSource, TokenizerConfig, TokenizerKind, Tokenizers,
};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
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

/// The filters that are always on, and `data.max_length`.
fn cleaner(max_length: usize) -> Cleaner {
    clean(&CleanConfig::default(), max_length)
}

fn clean(config: &CleanConfig, max_length: usize) -> Cleaner {
    Cleaner::new(config, "en", "de", max_length, HeldOut::new()).unwrap()
}

/// A tokenizer that knows every word of a corpus.
fn words(corpus: &Corpus) -> Tokenizers {
    let config = TokenizerConfig {
        kind: TokenizerKind::Word,
        min_frequency: 1,
        ..Default::default()
    };
    Tokenizers::train(&config, corpus, &()).unwrap()
}

/// Pairs of up to `longest` words on a side, as many as asked for, all different.
fn numbered(pairs: usize, longest: usize) -> Corpus {
    let side = |word: &str, factor: usize| {
        let line = |i: usize| {
            let repeated = vec![word; i * factor % longest];
            format!("{i} {}", repeated.join(" "))
        };
        (0..pairs).map(line).collect()
    };
    Corpus::new(side("a", 7919), side("b", 7907)).unwrap()
}

fn encoded(corpus: &Corpus) -> Dataset {
    Dataset::encode(corpus, &words(corpus), &cleaner(256)).unwrap()
}

/// Writes a corpus as `name.en` and `name.de`.
fn write_corpus(folder: &Path, name: &str, corpus: &Corpus) -> Input {
    let write = |language: &str, lines: &[String]| {
        let path = folder.join(format!("{name}.{language}"));
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(&path, text).unwrap();
        path
    };
    Input::Text(FilePair {
        source: write("en", &corpus.source),
        target: write("de", &corpus.target),
    })
}

fn text_of<'a>(inputs: &[Input], cleaner: &'a Cleaner) -> TextSource<'a> {
    TextSource {
        inputs: inputs.to_vec(),
        tag: None,
        bad_lines: BadLines::Error,
        cleaner,
    }
}

/// Both sides of all pairs.
fn all_ids(dataset: &Dataset) -> Vec<(Vec<u32>, Vec<u32>)> {
    (0..dataset.len())
        .map(|i| dataset.ids(i).unwrap())
        .collect()
}

/// Remembers the names of all phases.
#[derive(Default)]
struct Phases(Mutex<Vec<String>>);

impl Phases {
    /// The number of phases whose names begin with this.
    fn count(&self, what: &str) -> usize {
        let phases = self.0.lock().unwrap();
        let counted = phases.iter().filter(|phase| phase.starts_with(what));
        counted.count()
    }
}

impl Progress for Phases {
    fn start(&self, what: &str, _: Option<u64>) -> Box<dyn Task> {
        self.0.lock().unwrap().push(what.into());
        Box::new(())
    }
}
