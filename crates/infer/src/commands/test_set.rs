use std::io::stdin;
use std::path::{Path, PathBuf};

use attend_data::Lines;
use attend_infer::{Error, Result};

const STDIN: &str = "standard input";

/// A file of sentences, one on each line.
pub(super) struct TextFile {
    pub(super) path: PathBuf,
    pub(super) lines: Vec<String>,
}

impl TextFile {
    /// `-` is standard input.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let (lines, path) = match path == Path::new("-") {
            true => (Lines::new(stdin(), STDIN)?, STDIN.into()),
            false => (Lines::open(path)?, path.into()),
        };
        let lines = lines.collect::<attend_data::Result<Vec<String>>>()?;
        Ok(Self { path, lines })
    }

    pub(super) fn read_all(paths: &[PathBuf]) -> Result<Vec<Self>> {
        paths.iter().map(|path| Self::read(path)).collect()
    }
}

/// An error unless all files have the same number of lines, and at least one.
pub(super) fn check_lines<'a>(files: impl IntoIterator<Item = &'a TextFile>) -> Result<()> {
    let mut files = files.into_iter();
    let Some(first) = files.next() else {
        return Ok(());
    };
    for other in files {
        if first.lines.len() != other.lines.len() {
            return Err(Error::Data(attend_data::Error::UnequalLines {
                source_path: first.path.clone(),
                source_lines: first.lines.len(),
                target_path: other.path.clone(),
                target_lines: other.lines.len(),
            }));
        }
    }
    if first.lines.is_empty() {
        let paths = vec![first.path.clone()];
        return Err(Error::Data(attend_data::Error::EmptyCorpus { paths }));
    }
    Ok(())
}
