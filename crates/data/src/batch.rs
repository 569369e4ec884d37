//! Sentence pairs packed for a model.

use std::ops::Range;

use attend_batch::{Packed, Source};

/// A batch of sentence pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The source sequences, one for each pair.
    pub source: Source,
    /// The target sentences, in the same order.
    pub target: Packed,
    /// The index of each pair in the corpus, counted from 0.
    pub pairs: Vec<usize>,
}

impl Batch {
    /// The batch of a range of these pairs.
    pub fn part(&self, pairs: Range<usize>) -> Self {
        Self {
            source: self.source.part(pairs.clone()),
            target: self.target.part(pairs.clone()),
            pairs: self.pairs[pairs].to_vec(),
        }
    }
}
