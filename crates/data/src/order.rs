//! Which pairs make a batch, and when.
//!
//! The batches of an epoch are a pure function of (lengths, budget, seed, epoch), so a place in
//! training is two numbers and there is no random state to save.

use crate::{Batch, Dataset, Error, Result};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Pairs are sorted by length within pools that make about this many batches: enough for batches
/// of like length, few enough for batches that differ from epoch to epoch.
const POOL: usize = 64;

/// Where training stands in the data: before batch `index` of epoch `epoch`.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Position {
    /// How often all pairs have been seen.
    pub epoch: u64,
    /// How many batches of this epoch have been seen.
    pub index: u64,
}

impl Position {
    /// Before the first batch of the first epoch.
    pub const START: Self = Self { epoch: 0, index: 0 };
}

/// How many tokens the two sides of a pair have, `</s>` included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lengths {
    /// Tokens on the target side. First, because pairs are sorted by it first.
    pub target: usize,
    /// Tokens on the source side.
    pub source: usize,
}

/// The batches of one pass through the data: lists of pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Epoch {
    pairs: Vec<usize>,
    batches: Vec<std::ops::Range<usize>>,
}

impl Epoch {
    /// The shortest pairs first, every pair once. No randomness: for validation and translation.
    pub fn by_length(lengths: &[Lengths], batch_tokens: usize) -> Self {
        let mut pairs: Vec<usize> = (0..lengths.len()).collect();
        pairs.sort_by_key(|&i| lengths[i]);
        Self::cut(pairs, lengths, batch_tokens)
    }

    /// Number of batches.
    pub fn len(&self) -> usize {
        self.batches.len()
    }

    /// Whether there are no batches.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// The pairs of batch `index`.
    pub fn batch(&self, index: usize) -> &[usize] {
        &self.pairs[self.batches[index].clone()]
    }

    /// The batches, one by one.
    pub fn iter(&self) -> impl Iterator<Item = &[usize]> {
        self.batches.iter().map(|range| &self.pairs[range.clone()])
    }

    /// A new batch begins where the next pair would take either side beyond the budget.
    fn cut(pairs: Vec<usize>, lengths: &[Lengths], batch_tokens: usize) -> Self {
        let mut batches = Vec::new();
        let (mut start, mut source, mut target) = (0, 0, 0);
        for (end, &pair) in pairs.iter().enumerate() {
            let next = lengths[pair];
            let over = (source + next.source).max(target + next.target) > batch_tokens;
            if over && end > start {
                batches.push(start..end);
                (start, source, target) = (end, 0, 0);
            }
            source += next.source;
            target += next.target;
        }
        if start < pairs.len() {
            batches.push(start..pairs.len());
        }
        Self { pairs, batches }
    }
}

/// The order of all epochs.
#[derive(Clone, Debug)]
pub struct Order {
    lengths: Vec<Lengths>,
    batch_tokens: usize,
    seed: u64,
}

impl Order {
    /// The order of a dataset, for batches of at most `batch_tokens` tokens on either side.
    pub fn new(dataset: &Dataset, batch_tokens: usize, seed: u64) -> Self {
        Self {
            lengths: (0..dataset.len()).map(|i| dataset.lengths(i)).collect(),
            batch_tokens,
            seed,
        }
    }

    /// The batches of one epoch: pairs shuffled, sorted by length within pools, cut into batches,
    /// and the batches shuffled. Every pair is in exactly one of them.
    pub fn epoch(&self, epoch: u64) -> Epoch {
        let mut pairs: Vec<usize> = (0..self.lengths.len()).collect();
        Draws::new(self.seed, epoch, 0).shuffle(&mut pairs);
        self.sort_pools(&mut pairs);
        let mut epoch_batches = Epoch::cut(pairs, &self.lengths, self.batch_tokens);
        Draws::new(self.seed, epoch, 1).shuffle(&mut epoch_batches.batches);
        epoch_batches
    }

    /// Every second pool runs from long to short, so that the batch that spans two pools holds
    /// pairs of like length too. Equals keep their order.
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
            match ascending {
                true => pool.sort_by_key(length),
                false => pool.sort_by_key(|pair| std::cmp::Reverse(length(pair))),
            }
            ascending = !ascending;
            rest = tail;
        }
    }
}

/// Batches without end, epoch after epoch, from any position on.
#[derive(Clone, Debug)]
pub struct Batches {
    dataset: Arc<Dataset>,
    order: Order,
    position: Position,
    epoch: Epoch, // of `position`
}

impl Batches {
    /// The batches from `position` on. Apart from listing one epoch, this takes no time.
    pub fn new(
        dataset: Arc<Dataset>,
        batch_tokens: usize,
        seed: u64,
        position: Position,
    ) -> Result<Self> {
        let order = Order::new(&dataset, batch_tokens, seed);
        let epoch = order.epoch(position.epoch);
        let batches = epoch.len();
        if position.index >= batches as u64 {
            return Err(Error::Position { position, batches });
        }
        Ok(Self {
            dataset,
            order,
            position,
            epoch,
        })
    }

    /// The next batch, and the position after it: to go on from there, give it to
    /// [`Batches::new`].
    pub fn next_batch(&mut self) -> (Batch, Position) {
        let Position { epoch, index } = self.position;
        let batch = self.dataset.batch(self.epoch.batch(index as usize));
        self.position.index += 1;
        if self.position.index == self.epoch.len() as u64 {
            self.position = Position {
                epoch: epoch + 1,
                index: 0,
            };
            self.epoch = self.order.epoch(epoch + 1);
        }
        (batch, self.position)
    }

    /// The position before the next batch.
    pub fn position(&self) -> Position {
        self.position
    }

    /// How many batches the epoch of the next batch has.
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

/// Random numbers as a pure function of (seed, epoch, stream, index), the same on every machine.
struct Draws {
    key: u64,
}

impl Draws {
    fn new(seed: u64, epoch: u64, stream: u64) -> Self {
        let key = [epoch, stream]
            .into_iter()
            .fold(mix(seed), |key, value| mix(key ^ value));
        Self { key }
    }

    /// Fisher and Yates, drawing number `i` for place `i`.
    fn shuffle<T>(&self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let draw = mix(self.key ^ i as u64);
            let scaled = (u128::from(draw) * (i as u128 + 1)) >> 64; // 0..=i
            items.swap(i, scaled as usize);
        }
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014): one step of the generator from state `x`.
pub(crate) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
