//! Why a file of a source cannot be used.

use crate::{Error, Reason};
use std::path::Path;

/// What is wrong with a file, without its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// For which reason its pairs are dropped.
    pub(crate) reason: Reason,
    what: String,
    hint: String,
}

impl Problem {
    pub(crate) fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            reason: Reason::BadSource,
            what: what.into(),
            hint: hint.into(),
        }
    }

    /// More rows of features than a model may read.
    pub(super) fn too_long(rows: usize, most: usize) -> Self {
        Self {
            reason: Reason::TooLong,
            what: format!("has {rows} rows, and data.max_length is {most}"),
            hint: "raise data.max_length, or keep fewer rows".into(),
        }
    }

    /// The error of a file that somebody asked for.
    pub(super) fn of_file(self, path: &Path) -> Error {
        Error::Unreadable {
            problem: format!("{}: {}", path.display(), self.what),
            hint: self.hint,
        }
    }

    /// The error of a file that a line of a corpus names.
    pub(crate) fn at_line(self, path: &Path, corpus: &Path, line: u64) -> Error {
        Error::BadSource {
            corpus: corpus.into(),
            line,
            problem: format!("{}: {}", path.display(), self.what),
            hint: self.hint,
        }
    }
}
