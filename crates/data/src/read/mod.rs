//! Sentence pairs from files, one file of code for each format.

pub(crate) mod text;

use crate::Result;

/// A sentence pair and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The source sentence.
    pub source: String,
    /// Its translation.
    pub target: String,
    /// Its place in the file, counted from 1: a line, or a record of a format that has no lines.
    pub line: u64,
}

/// The pairs of a file.
pub type Pairs = Box<dyn Iterator<Item = Result<Pair>> + Send>;
