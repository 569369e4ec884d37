//! The order of the training batches.
//!
//! An epoch is divided into pools of pairs. The batches of a pool are a pure function of the mixture, the budget
//! and the position, so that training can go on from any position without what came before.

use crate::batching::cut;
use crate::mixture::{Mixture, Place};
use crate::random::Draws;
use crate::source::Sources;
use crate::{Augmenter, Batch, Error, Lengths, Result};
use attend_batch::Packed;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A pool has about this many batches. Within it, pairs are sorted by length. With more, batches hold pairs of more
/// similar lengths; with fewer, batches differ more from epoch to epoch.
const POOL: usize = 64;
/// The most pairs of a pool, which bounds the memory.
const MOST_PAIRS: u64 = 1 << 18;
/// Pairs that are sorted to count the batches of an epoch.
const MOST_COUNTED: u64 = 1 << 21;

/// The stream of random numbers that shuffles batches. [`Mixture`] has others.
const BATCHES: u64 = 2;

/// A position in the training data: before batch `index` of pool `pool` of epoch `epoch`.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Position {
    /// Epochs that are complete, or were ended by a change of stage.
    pub epoch: u64,
    /// Batches of this pool that are done.
    pub index: u64,
    /// Pools of this epoch that are done.
    #[serde(default)]
    pub pool: u64,
    /// The stage, counted from 0.
    #[serde(default)]
    pub stage: u64,
}

impl Position {
    /// Before the first batch of the first epoch.
    pub const START: Self = Self {
        epoch: 0,
        index: 0,
        pool: 0,
        stage: 0,
    };

    /// The start of the next epoch.
    pub fn next_epoch(self) -> Self {
        Self {
            epoch: self.epoch.saturating_add(1),
            stage: self.stage,
            ..Self::START
        }
    }
}

/// An endless iterator over the training batches, epoch after epoch, from any position.
pub struct Batches {
    mixture: Arc<Mixture>,
    augmenter: Option<Augmenter>,
    batch_tokens: usize,
    position: Position,
    /// The batches of the pool of `position`. Those that are done are empty.
    pool: Vec<Vec<Drawn>>,
}

/// A pair of a pool.
struct Drawn {
    place: Place,
    /// The ids of both sides, if they are not those of the dataset.
    ids: Option<(Vec<u32>, Vec<u32>)>,
}

impl Batches {
    /// The batches from `position` on, of at most `batch_tokens` tokens on either side. A pair that is longer is a
    /// batch of its own. Only the batches of one pool are listed.
    pub fn new(
        mixture: Arc<Mixture>,
        batch_tokens: usize,
        augmenter: Option<Augmenter>,
        position: Position,
    ) -> Result<Self> {
        let Position {
            stage, pool, index, ..
        } = position;
        let mut batches = Self {
            mixture,
            augmenter,
            batch_tokens,
            position,
            pool: Vec::new(),
        };
        if stage < batches.mixture.stages() && pool < batches.pools() {
            batches.pool = batches.list()?;
        }
        if index >= batches.pool.len() as u64 {
            return Err(Error::Position { position });
        }
        Ok(batches)
    }

    /// The next batch for a step of training, and the position after it, from which [`Batches::new`] continues. A
    /// step at which another stage begins starts a new epoch.
    pub fn next_batch(&mut self, step: u64) -> Result<(Batch, Position)> {
        let stage = self.mixture.stage_at(step);
        if stage != self.position.stage {
            let has_begun = self.position.pool > 0 || self.position.index > 0;
            let position = match has_begun {
                true => self.position.next_epoch(),
                false => self.position, // the last epoch ended just before
            };
            self.go_to(Position { stage, ..position })?;
        }
        let pairs = std::mem::take(&mut self.pool[self.position.index as usize]);
        let batch = self.batch(pairs)?;
        let next = Position {
            index: self.position.index + 1,
            ..self.position
        };
        if next.index < self.pool.len() as u64 {
            self.position = next;
        } else if next.pool + 1 < self.pools() {
            let pool = next.pool + 1;
            self.go_to(Position {
                pool,
                index: 0,
                ..next
            })?;
        } else {
            self.go_to(next.next_epoch())?;
        }
        Ok((batch, self.position))
    }

    fn go_to(&mut self, position: Position) -> Result<()> {
        self.position = position;
        self.pool = self.list()?;
        Ok(())
    }

    fn batch(&self, drawn: Vec<Drawn>) -> Result<Batch> {
        let mut source = Sources::new(self.mixture.source());
        let (mut target, mut pairs) = (Vec::new(), Vec::new());
        for Drawn { place, ids } in drawn {
            target.push(match ids {
                Some((changed, target)) => {
                    source.push_ids(changed);
                    target
                }
                None => {
                    let dataset = self.mixture.dataset(place.corpus);
                    dataset.read(place.pair, &mut source)?
                }
            });
            pairs.push(self.mixture.number(place));
        }
        Ok(Batch {
            source: source.finish(),
            target: Packed::of_sentences(target),
            pairs,
        })
    }

    /// Pools of an epoch of the current stage. They have about as many pairs each.
    fn pools(&self) -> u64 {
        let stage = self.position.stage;
        let pairs = self.mixture.epoch_pairs(stage);
        let tokens = self.batch_tokens.saturating_mul(POOL) as f64;
        let most = (tokens / self.mixture.mean_length(stage)) as u64;
        pairs.div_ceil(most.clamp(1, MOST_PAIRS)).max(1)
    }

    /// The batches of the current pool. Its pairs are sorted by length and cut into batches, and the batches are
    /// shuffled. Pairs of equal lengths keep their random order.
    fn list(&self) -> Result<Vec<Vec<Drawn>>> {
        let Position {
            stage, epoch, pool, ..
        } = self.position;
        let order = self.mixture.epoch(stage, epoch);
        let pairs = u128::from(self.mixture.epoch_pairs(stage));
        let pools = u128::from(self.pools());
        let start = |pool: u64| (pairs * u128::from(pool) / pools) as u64;
        let places = start(pool)..start(pool + 1);
        let mut drawn: Vec<(Lengths, Drawn)> = match &self.augmenter {
            None => {
                let pair = |place: Place| (self.mixture.lengths(place), Drawn { place, ids: None });
                places.map(|i| pair(order.at(i))).collect()
            }
            Some(augmenter) => {
                let pair = |i: u64| self.augmented(augmenter, order.at(i), [stage, epoch, i]);
                places.into_par_iter().map(pair).collect::<Result<_>>()?
            }
        };
        drawn.sort_by_key(|(lengths, _)| *lengths);
        let lengths: Vec<Lengths> = drawn.iter().map(|(lengths, _)| *lengths).collect();
        let mut drawn = drawn.into_iter().map(|(_, drawn)| drawn);
        let batches = cut(&lengths, self.batch_tokens).into_iter();
        let mut batches: Vec<Vec<Drawn>> = batches
            .map(|range| drawn.by_ref().take(range.len()).collect())
            .collect();
        Draws::new(self.mixture.seed(), [BATCHES, stage, epoch, pool]).shuffle(&mut batches);
        Ok(batches)
    }

    /// A pair that is changed at random, with its lengths after that, by which batches are cut.
    fn augmented(
        &self,
        augmenter: &Augmenter,
        place: Place,
        draw: [u64; 3],
    ) -> Result<(Lengths, Drawn)> {
        let dataset = self.mixture.dataset(place.corpus);
        let ids = augmenter.pair(dataset, place.pair, draw)?;
        let lengths = Lengths {
            source: ids.0.len(),
            target: ids.1.len(),
        };
        let ids = Some(ids);
        Ok((lengths, Drawn { place, ids }))
    }

    /// The position before the next batch.
    pub fn position(&self) -> Position {
        self.position
    }

    /// About how many batches the epoch of the next batch has: as if all of its pools were like the current one.
    pub fn epoch_len(&self) -> usize {
        self.pool.len().saturating_mul(self.pools() as usize)
    }

    /// How many batches an epoch of a stage has. If it has millions of pairs, the batches of a part of its pools are
    /// counted, and the others are taken to be like them.
    pub fn count(&self, stage: u64, epoch: u64) -> u64 {
        let mut batches = Self {
            mixture: self.mixture.clone(),
            augmenter: None,
            batch_tokens: self.batch_tokens,
            position: Position {
                stage,
                epoch,
                ..Position::START
            },
            pool: Vec::new(),
        };
        let pools = u128::from(batches.pools());
        let pairs = u128::from(self.mixture.epoch_pairs(stage));
        let share = pools * u128::from(MOST_COUNTED) / pairs.max(1);
        let counted = share.clamp(1, pools);
        let counts = (0..counted).map(|i| {
            batches.position.pool = (i * pools / counted) as u64;
            batches.list().map_or(0, |pool| pool.len() as u128)
        });
        let sum: u128 = counts.sum();
        (sum * pools / counted) as u64
    }
}
