//! The order of the training batches.
//!
//! The batches of an epoch are a pure function of (lengths, budget, seed, epoch). A position in
//! training is two numbers, and there is no random state to save.

use crate::random::Draws;
use crate::{Batch, Dataset, Epoch, Error, Lengths, Result};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Pairs are sorted by length within pools of about this many batches. With more, batches hold
/// pairs of more similar lengths; with fewer, batches differ more from epoch to epoch.
const POOL: usize = 64;

/// A position in the training data: before batch `index` of epoch `epoch`.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Position {
    /// Epochs that are complete.
    pub epoch: u64,
    /// Batches of this epoch that are done.
    pub index: u64,
}

impl Position {
    /// Before the first batch of the first epoch.
    pub const START: Self = Self { epoch: 0, index: 0 };
}

/// Makes the batches of each epoch.
#[derive(Clone, Debug)]
pub struct BatchSampler {
    lengths: Vec<Lengths>,
    batch_tokens: usize,
    seed: u64,
}

impl BatchSampler {
    /// Batches of at most `batch_tokens` tokens on either side. A pair that is longer is a batch of
    /// its own.
    pub fn new(dataset: &Dataset, batch_tokens: usize, seed: u64) -> Self {
        Self {
            lengths: (0..dataset.len()).map(|i| dataset.lengths(i)).collect(),
            batch_tokens,
            seed,
        }
    }

    /// The batches of one epoch. Pairs are shuffled, sorted by length within pools and cut into
    /// batches, and the batches are shuffled. Every pair is in exactly one batch.
    pub fn epoch(&self, epoch: u64) -> Epoch {
        let mut pairs: Vec<usize> = (0..self.lengths.len()).collect();
        Draws::new(self.seed, [epoch, 0]).shuffle(&mut pairs);
        self.sort_pools(&mut pairs);
        let mut epoch_batches = Epoch::cut(pairs, &self.lengths, self.batch_tokens);
        Draws::new(self.seed, [epoch, 1]).shuffle(&mut epoch_batches.batches);
        epoch_batches
    }

    /// Every second pool is sorted from long to short, so that a batch that spans two pools also
    /// holds pairs of similar lengths. Pairs of equal lengths keep their order.
    fn sort_pools(&self, pairs: &mut [usize]) {
        let length = |&pair: &usize| self.lengths[pair];
        let pool_tokens = self.batch_tokens.saturating_mul(POOL);
        let mut rest = pairs;
        let mut ascending = true;
        while !rest.is_empty() {
            let mut tokens = 0usize;
            let full = rest.iter().map(length).position(|l| {
                tokens = tokens.saturating_add(l.source.max(l.target));
                tokens >= pool_tokens
            });
            let size = full.map_or(rest.len(), |last| last + 1);
            let (pool, tail) = rest.split_at_mut(size);
            if ascending {
                pool.sort_by_key(length);
            } else {
                pool.sort_by_key(|pair| std::cmp::Reverse(length(pair)));
            }
            ascending = !ascending;
            rest = tail;
        }
    }
}

/// An endless iterator over the training batches, epoch after epoch, from any position.
#[derive(Clone, Debug)]
pub struct Batches {
    dataset: Arc<Dataset>,
    sampler: BatchSampler,
    position: Position,
    epoch: Epoch, // of `position`
}

impl Batches {
    /// The batches from `position` on. Listing the batches of one epoch is all the work there is.
    pub fn new(
        dataset: Arc<Dataset>,
        batch_tokens: usize,
        seed: u64,
        position: Position,
    ) -> Result<Self> {
        let sampler = BatchSampler::new(&dataset, batch_tokens, seed);
        let epoch = sampler.epoch(position.epoch);
        let batches = epoch.len();
        if position.index >= batches as u64 {
            return Err(Error::Position { position, batches });
        }
        Ok(Self {
            dataset,
            sampler,
            position,
            epoch,
        })
    }

    /// The next batch and the position after it, from which [`Batches::new`] continues.
    pub fn next_batch(&mut self) -> (Batch, Position) {
        let Position { epoch, index } = self.position;
        let batch = self.dataset.batch(self.epoch.batch(index as usize));
        self.position.index += 1;
        if self.position.index == self.epoch.len() as u64 {
            let epoch = epoch.saturating_add(1);
            self.position = Position { epoch, index: 0 };
            self.epoch = self.sampler.epoch(epoch);
        }
        (batch, self.position)
    }

    /// The position before the next batch.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Number of batches in the epoch of the next batch.
    pub fn epoch_len(&self) -> usize {
        self.epoch.len()
    }
}

impl Iterator for Batches {
    type Item = (Batch, Position);

    /// Never `None`. See [`Batches::next_batch`].
    fn next(&mut self) -> Option<Self::Item> {
        Some(self.next_batch())
    }
}
