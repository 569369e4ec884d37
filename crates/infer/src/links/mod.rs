//! Which words of a translation come from which words of its source.
//!
//! | file | contents |
//! |---|---|
//! | `attention` | links by the model's attention to the source |
//! | `heads` | whose attention, and the file that says so |
//! | `judge` | how well every head agrees with a lexical reference |
//! | `lexical` | that reference: links by the words alone, from IBM Model 1 |
//! | `words` | which word a token belongs to |

mod attention;
mod heads;
mod judge;
mod lexical;
mod words;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use attention::WordAligner;
pub use heads::Heads;
pub use judge::Judged;
pub use lexical::lexical_links;
pub(crate) use words::words_of_tokens;

use crate::{Hypothesis, Result};

/// A word of the source and a word of its translation that stand for each other. Words are what white space
/// separates, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Link {
    pub source: usize,
    pub target: usize,
}

/// As in the format of Pharaoh: `0-2` is the first word of the source and the third of its translation.
impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}-{}", self.source, self.target)
    }
}

/// A source text and one of its translations.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    pub source: &'a str,
    pub target: &'a Hypothesis,
}

/// Finds which words stand for each other.
pub trait AlignWords: Sync {
    /// The links of each pair, sorted, in the order of the pairs.
    fn links(&self, pairs: &[Pair]) -> Result<Vec<Vec<Link>>>;
}
