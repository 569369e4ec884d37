//! All sentence pairs of a corpus, in memory.

use crate::{Error, Input, Paths, Progress, Result, SourceKind};
use std::path::Path;

const REPORTED: usize = 1024; // pairs between two reports of progress

/// Sentence pairs: `target[i]` is the translation of `source[i]`. There is at least one pair. A
/// sentence may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corpus {
    /// The source sentences.
    pub source: Vec<String>,
    /// The target sentences, one for each source sentence.
    pub target: Vec<String>,
}

impl Corpus {
    /// Reads all files in the given order. A bad line is an error.
    pub fn read(
        paths: &Paths,
        source: &str,
        target: &str,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let inputs = paths.resolve(source, target)?;
        Self::read_inputs(&inputs, SourceKind::Text, progress)
    }

    /// The same for files that were found. Sources of another kind than text are paths.
    pub fn read_inputs(
        inputs: &[Input],
        kind: SourceKind,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let mut corpus = Self {
            source: Vec::new(),
            target: Vec::new(),
        };
        for input in inputs {
            let files = input.files();
            let files: Vec<_> = files.iter().map(|p| p.display().to_string()).collect();
            let task = progress.start(&format!("reading {}", files.join(" and ")), None);
            for (read, pair) in input.open_as(kind)?.enumerate() {
                let pair = pair?;
                corpus.source.push(pair.source);
                corpus.target.push(pair.target);
                if (read + 1).is_multiple_of(REPORTED) {
                    task.advance(REPORTED as u64);
                }
            }
        }
        if corpus.is_empty() {
            let paths = inputs.iter().flat_map(Input::files);
            let paths = paths.map(Path::to_path_buf).collect();
            return Err(Error::EmptyCorpus { paths });
        }
        Ok(corpus)
    }

    /// A corpus of sentences in memory.
    pub fn new(source: Vec<String>, target: Vec<String>) -> Result<Self> {
        let (source_path, target_path) = ("source".into(), "target".into());
        if source.len() != target.len() {
            return Err(Error::UnequalLines {
                source_path,
                source_lines: source.len(),
                target_path,
                target_lines: target.len(),
            });
        }
        if source.is_empty() {
            let paths = vec![source_path, target_path];
            return Err(Error::EmptyCorpus { paths });
        }
        Ok(Self { source, target })
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.source.len()
    }

    /// Always false for a corpus that was read: a corpus without sentences is an error.
    pub fn is_empty(&self) -> bool {
        self.source.is_empty()
    }
}
