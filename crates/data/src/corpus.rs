//! Sentence pairs from two files.

use crate::{Error, FilePair, Input, Lines, Paths, Progress, Result, Task};
use std::fs;
use std::path::Path;

const REPORTED: usize = 1024; // lines between two reports of progress

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
    /// Reads all pairs of files in the given order.
    pub fn read(
        paths: &Paths,
        source: &str,
        target: &str,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let files = paths.resolve(source, target)?;
        let mut corpus = Self {
            source: Vec::new(),
            target: Vec::new(),
        };
        for input in &files {
            let Input::Text(pair) = input else { todo!() };
            let (source, target) = read_pair(pair, progress)?;
            corpus.source.extend(source);
            corpus.target.extend(target);
        }
        if corpus.is_empty() {
            let paths = files.iter().flat_map(Input::files);
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

fn read_pair(files: &FilePair, progress: &dyn Progress) -> Result<(Vec<String>, Vec<String>)> {
    let (source, target) = (files.source.display(), files.target.display());
    if is_same_file(&files.source, &files.target) {
        tracing::warn!("{source} is both the source and the target of a corpus");
    }
    let task = progress.start(&format!("reading {source} and {target}"), None);
    let source = read_lines(&files.source, &*task)?;
    let target = read_lines(&files.target, &*task)?;
    if source.len() != target.len() {
        return Err(Error::UnequalLines {
            source_path: files.source.clone(),
            source_lines: source.len(),
            target_path: files.target.clone(),
            target_lines: target.len(),
        });
    }
    Ok((source, target))
}

fn read_lines(path: &Path, task: &dyn Task) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for line in Lines::open(path)? {
        lines.push(line?);
        if lines.len().is_multiple_of(REPORTED) {
            task.advance(REPORTED as u64);
        }
    }
    Ok(lines)
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    match (fs::canonicalize(a), fs::canonicalize(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}
