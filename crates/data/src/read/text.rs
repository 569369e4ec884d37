//! Parallel text: two files, line by line.

use super::{Pair, Pairs, bad, pairs_of};
use crate::{Error, FilePair, Lines, Result};
use std::fs;
use std::path::Path;

pub(crate) fn open(files: &FilePair) -> Result<Pairs> {
    if is_same_file(&files.source, &files.target) {
        let source = files.source.display();
        tracing::warn!("{source} is both the source and the target of a corpus");
    }
    let mut text = Text {
        source: Lines::open(&files.source)?,
        target: Lines::open(&files.target)?,
    };
    Ok(pairs_of(move || text.next_pair()))
}

struct Text {
    source: Lines,
    target: Lines,
}

impl Text {
    fn next_pair(&mut self) -> Result<Option<Pair>> {
        let (source, target) = (self.source.next(), self.target.next());
        let lines = [&source, &target];
        if lines.iter().all(|line| line.is_none()) {
            return Ok(None);
        }
        if lines.iter().any(|line| line.is_none()) && !lines.into_iter().any(is_fatal) {
            return Err(self.unequal()?);
        }
        // Damage of the second file goes before a bad line of the first.
        if is_fatal(&target) {
            return target.transpose().map(|_| None);
        }
        let (Some(source), Some(target)) = (source.transpose()?, target.transpose()?) else {
            return Ok(None);
        };
        let line = self.source.count_read() as u64;
        for (lines, text) in [(&self.source, &source), (&self.target, &target)] {
            if text.contains('\0') {
                return Err(bad(lines.path(), line, "a NUL character"));
            }
        }
        Ok(Some(Pair {
            source,
            target,
            line,
        }))
    }

    /// The error of files with different numbers of lines. The longer file is read to its end.
    fn unequal(&mut self) -> Result<Error> {
        for lines in [&mut self.source, &mut self.target] {
            for line in lines {
                match line {
                    Err(error) if !error.is_bad_line() => return Err(error),
                    _ => {}
                }
            }
        }
        Ok(Error::UnequalLines {
            source_path: self.source.path().into(),
            source_lines: self.source.count_read(),
            target_path: self.target.path().into(),
            target_lines: self.target.count_read(),
        })
    }
}

fn is_fatal(line: &Option<Result<String>>) -> bool {
    matches!(line, Some(Err(error)) if !error.is_bad_line())
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    match (fs::canonicalize(a), fs::canonicalize(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}
