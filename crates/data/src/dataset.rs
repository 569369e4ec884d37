//! A corpus as token ids.

use crate::random::mix;
use crate::{Batch, Corpus, Error, Lengths, Progress, Result, Tokenizers};
use attend_batch::Packed;
use serde::Serialize;
use std::fmt;

const CHUNK: usize = 1 << 18; // pairs encoded at a time; only these are in memory twice

/// All pairs of a corpus as token ids. Each side is one flat vector and the ends of its sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dataset {
    source: Flat,
    target: Flat,
    pairs: Vec<usize>, // the index of each pair in the corpus
}

/// Which pairs of a corpus are encoded. Lengths are in tokens, including `</s>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Pairs with text on both sides and at most `max_length` tokens on each.
    ToTrain { max_length: usize },
    /// Pairs with at most `max_length` tokens on each side. A side may be empty.
    ToValidate { max_length: usize },
}

/// How many pairs of a corpus were kept and skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Pairs in the corpus.
    pub pairs: usize,
    /// Pairs in the dataset.
    pub kept: usize,
    /// Pairs skipped because a side has no text.
    pub empty: usize,
    /// Pairs skipped because a side has too many tokens.
    pub too_long: usize,
}

impl Dataset {
    /// Encodes the pairs of a corpus that `keep` names. It is an error if there are none.
    pub fn encode(
        corpus: &Corpus,
        tokenizers: &Tokenizers,
        keep: Keep,
        progress: &dyn Progress,
    ) -> Result<(Self, Report)> {
        let mut dataset = Self {
            source: Flat::new(),
            target: Flat::new(),
            pairs: Vec::new(),
        };
        let mut report = Report::default();
        let task = progress.start(
            &format!("encoding {} pairs", corpus.len()),
            Some(corpus.len() as u64),
        );
        let chunks = corpus.source.chunks(CHUNK).zip(corpus.target.chunks(CHUNK));
        for (source_lines, target_lines) in chunks {
            let source = tokenizers.require_source()?.encode_batch(source_lines)?;
            let target = tokenizers.target().encode_batch(target_lines)?;
            for (i, (source, target)) in source.iter().zip(&target).enumerate() {
                let pair = report.pairs;
                report.pairs += 1;
                let empty = source.len() == 1 // </s> alone
                    || target.len() == 1
                    || source_lines[i].trim().is_empty()
                    || target_lines[i].trim().is_empty();
                let (train, most) = match keep {
                    Keep::ToTrain { max_length } => (true, max_length),
                    Keep::ToValidate { max_length } => (false, max_length),
                };
                if train && empty {
                    report.empty += 1;
                } else if source.len().max(target.len()) > most {
                    report.too_long += 1;
                } else {
                    dataset.source.push(source);
                    dataset.target.push(target);
                    dataset.pairs.push(pair);
                }
            }
            task.advance(source.len() as u64);
        }
        report.kept = dataset.len();
        match report.kept {
            0 => Err(Error::NothingLeft { keep, report }),
            _ => Ok((dataset, report)),
        }
    }

    /// Number of pairs. Never 0.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Always false.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The index of each pair in the corpus.
    pub fn pairs(&self) -> &[usize] {
        &self.pairs
    }

    /// The token ids of source sentence `i`, including `</s>`.
    pub fn source(&self, i: usize) -> &[u32] {
        self.source.get(i)
    }

    /// The token ids of target sentence `i`, including `</s>`.
    pub fn target(&self, i: usize) -> &[u32] {
        self.target.get(i)
    }

    /// The lengths of both sides of pair `i`.
    pub fn lengths(&self, i: usize) -> Lengths {
        Lengths {
            source: self.source(i).len(),
            target: self.target(i).len(),
        }
    }

    /// A batch of these pairs.
    pub fn batch(&self, indices: &[usize]) -> Batch {
        Batch {
            source: Packed::of_sentences(indices.iter().map(|&i| self.source(i))).into(),
            target: Packed::of_sentences(indices.iter().map(|&i| self.target(i))),
            pairs: indices.iter().map(|&i| self.pairs[i]).collect(),
        }
    }

    /// A hash of all token ids. It is saved with a checkpoint, to detect that training continues with
    /// other data.
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
            "kept {kept} of {pairs} pairs, skipped {empty} with an empty side and {too_long} that are too long"
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
