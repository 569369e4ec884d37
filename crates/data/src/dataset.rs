//! A corpus as token ids.

use crate::order::mix;
use crate::{Batch, Corpus, Error, Lengths, Result, Sentences, Tokenizers};
use serde::Serialize;
use std::fmt;

const CHUNK: usize = 1 << 18; // pairs encoded at a time, which bounds what is held twice

/// Every pair of a corpus as token ids: per side one flat vector, and where sentences end in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dataset {
    source: Flat,
    target: Flat,
    pairs: Vec<usize>, // which pair of the corpus
}

/// What became of the pairs of a corpus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Pairs in the corpus.
    pub pairs: usize,
    /// Pairs in the dataset.
    pub kept: usize,
    /// Pairs left out because a side has no text.
    pub empty: usize,
    /// Pairs left out because a side has too many tokens.
    pub too_long: usize,
}

impl Dataset {
    /// Encodes a corpus.
    ///
    /// With `max_length`, as for training, pairs are left out when a side is empty or has more
    /// than `max_length` tokens, `</s>` included. Without, as for evaluation, every pair is kept.
    pub fn encode(
        corpus: &Corpus,
        tokenizers: &Tokenizers,
        max_length: Option<usize>,
    ) -> Result<(Self, Report)> {
        let mut dataset = Self {
            source: Flat::new(),
            target: Flat::new(),
            pairs: Vec::new(),
        };
        let mut report = Report::default();
        let chunks = corpus.source.chunks(CHUNK).zip(corpus.target.chunks(CHUNK));
        for (source_lines, target_lines) in chunks {
            let source = tokenizers.source().encode_batch(source_lines)?;
            let target = tokenizers.target().encode_batch(target_lines)?;
            for (i, (source, target)) in source.iter().zip(&target).enumerate() {
                let pair = report.pairs;
                report.pairs += 1;
                let empty = source.len() == 1 // </s> alone
                    || target.len() == 1
                    || source_lines[i].trim().is_empty()
                    || target_lines[i].trim().is_empty();
                match max_length {
                    Some(_) if empty => report.empty += 1,
                    Some(most) if source.len().max(target.len()) > most => report.too_long += 1,
                    _ => {
                        dataset.source.push(source);
                        dataset.target.push(target);
                        dataset.pairs.push(pair);
                    }
                }
            }
        }
        report.kept = dataset.len();
        match report.kept {
            0 => Err(Error::NothingLeft { report }),
            _ => Ok((dataset, report)),
        }
    }

    /// Number of pairs. Never 0.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether there are no pairs, which is never so.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The ids of source sentence `i`, `</s>` included.
    pub fn source(&self, i: usize) -> &[u32] {
        self.source.get(i)
    }

    /// The ids of target sentence `i`, `</s>` included.
    pub fn target(&self, i: usize) -> &[u32] {
        self.target.get(i)
    }

    /// How long both sides of pair `i` are.
    pub fn lengths(&self, i: usize) -> Lengths {
        Lengths {
            source: self.source(i).len(),
            target: self.target(i).len(),
        }
    }

    /// These pairs laid end to end.
    pub fn batch(&self, indices: &[usize]) -> Batch {
        Batch {
            source: Sentences::pack(indices.iter().map(|&i| self.source(i))),
            target: Sentences::pack(indices.iter().map(|&i| self.target(i))),
            pairs: indices.iter().map(|&i| self.pairs[i]).collect(),
        }
    }

    /// A number that is different, as good as always, when any id of any pair is. Saved with a
    /// checkpoint it tells whether training goes on with the data that it began with.
    pub fn fingerprint(&self) -> u64 {
        [&self.source, &self.target]
            .into_iter()
            .fold(0, |hash, side| side.fingerprint(hash))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self {
            pairs,
            kept,
            empty,
            too_long,
        } = self;
        write!(
            f,
            "{kept} of {pairs} pairs kept, {empty} with an empty side and {too_long} too long left out"
        )
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Flat {
    ids: Vec<u32>,
    ends: Vec<usize>,
}

impl Flat {
    fn new() -> Self {
        Self {
            ids: Vec::new(),
            ends: Vec::new(),
        }
    }

    fn push(&mut self, sentence: &[u32]) {
        self.ids.extend_from_slice(sentence);
        self.ends.push(self.ids.len());
    }

    fn get(&self, i: usize) -> &[u32] {
        let start = match i {
            0 => 0,
            i => self.ends[i - 1],
        };
        &self.ids[start..self.ends[i]]
    }

    fn fingerprint(&self, seed: u64) -> u64 {
        let ends = self.ends.iter().map(|end| *end as u64);
        let ids = self.ids.iter().map(|id| u64::from(*id));
        std::iter::once(ends.len() as u64)
            .chain(ends)
            .chain(ids)
            .fold(seed, |hash, value| mix(hash ^ value))
    }
}
