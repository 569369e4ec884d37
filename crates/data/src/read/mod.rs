//! Sentence pairs from files, one file of code for each format.

mod decoded;
pub(crate) mod jsonl;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
pub(crate) mod text;
pub(crate) mod tmx;
pub(crate) mod tsv;
mod unit;

use crate::{Error, MAX_LINE_BYTES, Result};
use std::path::Path;

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

/// The pairs that `next` gives, to the end or to an error that is no bad line. `next` is not called after that.
fn pairs_of(mut next: impl FnMut() -> Result<Option<Pair>> + Send + 'static) -> Pairs {
    let mut ended = false;
    Box::new(std::iter::from_fn(move || {
        if ended {
            return None;
        }
        let pair = next();
        ended = match &pair {
            Ok(pair) => pair.is_none(),
            Err(error) => !error.is_bad_line(),
        };
        pair.transpose()
    }))
}

/// A bad line, after which the next pair can be read.
fn bad(path: &Path, line: u64, problem: impl Into<String>) -> Error {
    Error::BadRecord {
        path: path.into(),
        line,
        problem: problem.into(),
    }
}

/// The pair of one record, if both sides are sentences that can be used.
fn pair(path: &Path, line: u64, source: String, target: String) -> Result<Pair> {
    for (side, text) in [("source", &source), ("target", &target)] {
        if text.len() > MAX_LINE_BYTES {
            let problem = format!("the {side} has more than {MAX_LINE_BYTES} bytes");
            return Err(bad(path, line, problem));
        }
        if text.contains('\0') {
            return Err(bad(path, line, format!("a NUL character in the {side}")));
        }
    }
    Ok(Pair {
        source,
        target,
        line,
    })
}

/// A value of a format in which values can have line ends. Sentences have none: they become spaces.
fn on_one_line(text: String) -> String {
    if text.contains(['\r', '\n']) {
        text.replace("\r\n", " ").replace(['\r', '\n'], " ")
    } else {
        text
    }
}

/// A name from a file, as it is shown in a message.
fn short(name: &str) -> String {
    const SHOWN: usize = 60;
    match name.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.into(),
    }
}
