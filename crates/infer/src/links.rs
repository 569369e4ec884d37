use crate::{Hypothesis, Result};

/// A word of the source and a word of its translation that stand for each other. Words are what white space
/// separates, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    pub source: usize,
    pub target: usize,
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
