//! Corpora, filters and tokenizers for tests.

use attend_batch::SourceShape;
use attend_data::{
    BadLines, CleanConfig, Cleaner, Corpus, Dataset, FilePair, HeldOut, Input, Progress, Task,
    TextSource, TokenizerConfig, TokenizerKind, Tokenizers,
};
use std::path::Path;
use std::sync::Mutex;

/// The filters that are always on, and `data.max_length`.
pub(crate) fn cleaner(max_length: usize) -> Cleaner {
    clean(&CleanConfig::default(), max_length)
}

pub(crate) fn clean(config: &CleanConfig, max_length: usize) -> Cleaner {
    Cleaner::new(config, "en", "de", max_length, HeldOut::new()).unwrap()
}

/// A tokenizer that knows every word of a corpus.
pub(crate) fn words(corpus: &Corpus) -> Tokenizers {
    let config = TokenizerConfig {
        kind: TokenizerKind::Word,
        min_frequency: 1,
        ..Default::default()
    };
    Tokenizers::train(&config, corpus, &()).unwrap()
}

/// Pairs of up to `longest` words on a side, as many as asked for, all different.
pub(crate) fn numbered(pairs: usize, longest: usize) -> Corpus {
    let side = |word: &str, factor: usize| {
        let line = |i: usize| {
            let repeated = vec![word; i * factor % longest];
            format!("{i} {}", repeated.join(" "))
        };
        (0..pairs).map(line).collect()
    };
    Corpus::new(side("a", 7919), side("b", 7907)).unwrap()
}

pub(crate) fn encoded(corpus: &Corpus) -> Dataset {
    Dataset::encode(corpus, &words(corpus), &cleaner(256)).unwrap()
}

/// Writes a corpus as `name.en` and `name.de`.
pub(crate) fn write_corpus(folder: &Path, name: &str, corpus: &Corpus) -> Input {
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

pub(crate) fn text_of<'a>(inputs: &[Input], cleaner: &'a Cleaner) -> TextSource<'a> {
    TextSource {
        source: SourceShape::Text,
        inputs: inputs.to_vec(),
        tag: None,
        bad_lines: BadLines::Error,
        cleaner,
    }
}

/// Both sides of all pairs.
pub(crate) fn all_ids(dataset: &Dataset) -> Vec<(Vec<u32>, Vec<u32>)> {
    (0..dataset.len())
        .map(|i| dataset.ids(i).unwrap())
        .collect()
}

/// Remembers the names of all phases.
#[derive(Default)]
pub(crate) struct Phases(Mutex<Vec<String>>);

impl Phases {
    /// The number of phases whose names begin with this.
    pub(crate) fn count(&self, what: &str) -> usize {
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
