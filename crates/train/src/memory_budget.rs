use attend_data::{Batch, Dataset, Lengths, Mixture};
use attend_model::{BatchSize, Footprint, Vocabularies};

use crate::freeze::Freeze;
use crate::{Config, Error, MemorySize, Result, TrainConfig};

/// Limits the memory of a training. The memory of a batch is computed, not measured, so that the same config
/// always gives the same batches.
pub(crate) struct MemoryBudget {
    limit: Option<u64>,
    /// Bytes that do not depend on the batch.
    fixed: u64,
    footprint: Footprint,
}

/// Bytes of the program itself, its threads and their buffers.
const PROGRAM: u64 = 128 << 20;
/// Bytes that hold the order of the next batches. The data itself is mapped, not held.
const ORDER: u64 = 2 << 20;

impl MemoryBudget {
    /// The memory of the config's model with these vocabularies.
    pub(crate) fn footprint(config: &Config, vocabularies: Vocabularies) -> Result<Footprint> {
        let mut footprint = config.model.footprint(vocabularies)?;
        if config.train.consistency.is_some() {
            footprint.training = footprint.training.of_passes(2);
        }
        if config.train.freeze.is_empty() {
            return Ok(footprint);
        }
        let freeze = Freeze::new(&config.train.freeze);
        let shapes = config.model.weight_shapes(vocabularies)?;
        let frozen = shapes.iter().filter(|(name, _)| freeze.covers(name));
        let frozen = frozen.map(|(_, shape)| shape.iter().product::<usize>());
        Ok(Footprint {
            frozen: frozen.sum(),
            ..footprint
        })
    }

    /// Bytes that training takes whatever the data are.
    pub(crate) fn of_model(config: &TrainConfig, footprint: &Footprint) -> u64 {
        PROGRAM.saturating_add(footprint.optimizer_bytes(config.moving_average.is_some()))
    }

    /// An error if `train.max_memory` has no room for the model and the data.
    pub(crate) fn new(config: &Config, footprint: Footprint) -> Result<Self> {
        let fixed = Self::of_model(&config.train, &footprint) + ORDER;
        let limit = config.train.max_memory.map(|limit| limit.0);
        match limit.filter(|&limit| limit <= fixed) {
            Some(limit) => Err(Error::MemoryLimit {
                limit: MemorySize(limit),
                needed: MemorySize(fixed.next_multiple_of(1 << 20)),
            }),
            None => Ok(Self {
                limit,
                fixed,
                footprint,
            }),
        }
    }

    /// Bytes that training takes with the largest batch of this data, by estimate.
    pub(crate) fn estimate(&self, data: &Mixture, batch_tokens: usize) -> u64 {
        let longest = |side: fn(Lengths) -> usize| {
            let lengths = data.datasets().map(|dataset| side(dataset.longest()));
            lengths.max().unwrap_or(0)
        };
        let longest_source = longest(|lengths| lengths.source);
        let longest_target = longest(|lengths| lengths.target);
        let tokens = || data.datasets().map(Dataset::tokens);
        let all_source: usize = tokens().map(|lengths| lengths.source).sum();
        let all_target: usize = tokens().map(|lengths| lengths.target).sum();
        // A pair that is longer than a batch is a batch of its own.
        let largest = BatchSize {
            source: all_source.min(batch_tokens).max(longest_source),
            target: all_target.min(batch_tokens).max(longest_target),
            longest_source,
            longest_target,
        };
        // Without the reserve that is part of `batch_bytes`: what may fit is not refused.
        let needed = self.fixed + self.footprint.batch_bytes(largest) / 3 * 2;
        self.limit.map_or(needed, |limit| limit.min(needed))
    }

    /// Maximum bytes of training on such a batch.
    fn needed(&self, batch: BatchSize) -> u64 {
        self.fixed + self.footprint.batch_bytes(batch)
    }

    /// The batch, or parts of it that fit into the limit: as many sentences as fit, in their order. A sentence
    /// that does not fit even alone is a part of its own.
    pub(crate) fn parts(&self, batch: Batch) -> Vec<Batch> {
        let Some(limit) = self.limit else {
            return vec![batch];
        };
        let mut starts = vec![0];
        let mut load = BatchSize::default();
        let (source, target) = (batch.source.segments(), &batch.target.segments);
        let lengths = source.lengths().iter().zip(target.lengths());
        for (i, (&source, &target)) in lengths.enumerate() {
            if self.needed(load.with(source, target)) > limit && load != BatchSize::default() {
                starts.push(i);
                load = BatchSize::default();
            }
            load = load.with(source, target);
        }
        if starts.len() == 1 {
            return vec![batch];
        }
        let ends = starts[1..].iter().copied().chain([batch.pairs.len()]);
        let parts = starts.iter().zip(ends);
        parts.map(|(&start, end)| batch.part(start..end)).collect()
    }
}

#[cfg(test)]
mod tests {
    use attend_batch::Packed;
    use attend_model::{SearchFootprint, TrainingFootprint};

    use super::*;

    #[test]
    fn parts_have_every_sentence_once_in_order_and_each_fits() {
        let sentences = |lengths: &[usize]| {
            Packed::of_sentences(lengths.iter().map(|&length| vec![length as u32; length]))
        };
        let lengths = [3, 9, 1, 30, 4, 4, 4];
        let batch = Batch {
            source: sentences(&lengths).into(),
            target: sentences(&lengths),
            pairs: (0..lengths.len()).collect(),
        };
        let footprint = Footprint {
            weights: 0,
            frozen: 0,
            training: TrainingFootprint {
                source: 1,
                target: 2,
                ..TrainingFootprint::default()
            },
            search: SearchFootprint::default(),
        };
        let room = |tokens: u64| MemoryBudget {
            limit: Some(1000 + tokens * 3 * 4 * 3 / 2),
            fixed: 1000,
            footprint: footprint.clone(),
        };
        assert_eq!(room(1000).parts(batch.clone()), vec![batch.clone()]);
        let parts = room(12).parts(batch.clone());
        let pairs: Vec<_> = parts.iter().map(|part| part.pairs.clone()).collect();
        assert_eq!(pairs, [vec![0, 1], vec![2], vec![3], vec![4, 5, 6]]);
        for part in &parts {
            let want: Vec<_> = part.pairs.iter().map(|&pair| lengths[pair]).collect();
            assert_eq!(part.target.ids, sentences(&want).ids);
            assert_eq!(part.source, part.target.clone().into());
            let places = (0..want.len()).map(|index| part.target.segments.place(index));
            assert!(
                places.eq(part.pairs.iter().copied()),
                "the places in the batch"
            );
        }
    }
}
