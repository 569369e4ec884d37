use attend_data::{Batch, Dataset, Sentences};
use attend_model::{Activations, Seq2Seq};

use crate::{Error, MemorySize, Result, TrainConfig};

/// The memory that a training may take. What a batch takes is computed, not measured, so that the
/// same config always cuts the same batches.
pub(crate) struct Room {
    limit: Option<u64>,
    /// Bytes that are there whatever the batch.
    fixed: u64,
    activations: Activations,
}

/// The tokens of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    source: usize,
    target: usize,
    longest_source: usize,
    longest_target: usize,
}

impl Load {
    /// One more pair.
    pub(crate) fn with(self, source: usize, target: usize) -> Self {
        Self {
            source: self.source + source,
            target: self.target + target,
            longest_source: self.longest_source.max(source),
            longest_target: self.longest_target.max(target),
        }
    }
}

/// The program itself, its threads, and the pieces of matrices that it works on.
const PROGRAM: u64 = 128 << 20;
/// Bytes of one number, or of one token.
const FLOAT: u64 = 4;
/// Bytes that a pair takes beside its tokens: where it is, and when its turn comes.
const PAIR: u64 = 64;

impl Room {
    pub(crate) fn new(
        config: &TrainConfig,
        model: &dyn Seq2Seq,
        activations: Activations,
        dataset: &Dataset,
    ) -> Result<Self> {
        let lengths = (0..dataset.len()).map(|pair| dataset.lengths(pair));
        let tokens: usize = lengths.map(|lengths| lengths.source + lengths.target).sum();
        let data = FLOAT * tokens as u64 + PAIR * dataset.len() as u64;
        // The value, the gradient, Adam's two moments, the average; and, while a checkpoint is
        // written, all but the gradient again, and one of them once more.
        let averages = u64::from(config.moving_average.is_some());
        let copies = 4 + averages + 4 + averages;
        let parameters = FLOAT * copies * model.params().count() as u64;
        let fixed = PROGRAM + parameters + FLOAT * activations.fixed as u64 + data;
        let limit = config.max_memory.map(|limit| limit.0);
        match limit.filter(|&limit| limit <= fixed) {
            Some(limit) => Err(Error::LittleMemory {
                limit: MemorySize(limit),
                needed: MemorySize(fixed.next_multiple_of(1 << 20)),
            }),
            None => Ok(Self {
                limit,
                fixed,
                activations,
            }),
        }
    }

    /// Bytes that training takes at most on such a batch.
    pub(crate) fn needed(&self, load: Load) -> u64 {
        let (each, load) = (&self.activations, load);
        let numbers = load.source * each.source
            + load.target * each.target
            + load.source * load.longest_source * each.source_to_source
            + load.target * load.longest_target * each.target_to_target
            + load.target * load.longest_source * each.target_to_source;
        // Buffers that fit no other batch are kept for a while.
        self.fixed + FLOAT * numbers as u64 * 3 / 2
    }

    /// The batch, or parts of it that each have room: as many sentences, in their order, as fit. A
    /// sentence that has no room even alone is a part of its own.
    pub(crate) fn parts(&self, batch: Batch) -> Vec<Batch> {
        let Some(limit) = self.limit else {
            return vec![batch];
        };
        let mut starts = vec![0];
        let mut load = Load::default();
        let lengths = batch.source.lengths.iter().zip(&batch.target.lengths);
        for (i, (&source, &target)) in lengths.enumerate() {
            if self.needed(load.with(source, target)) > limit && load != Load::default() {
                starts.push(i);
                load = Load::default();
            }
            load = load.with(source, target);
        }
        if starts.len() == 1 {
            return vec![batch];
        }
        let ends = starts[1..].iter().copied().chain([batch.source.len()]);
        let parts = starts.iter().zip(ends).map(|(&start, end)| {
            let pick =
                |side: &Sentences| Sentences::pack(side.iter().skip(start).take(end - start));
            Batch {
                source: pick(&batch.source),
                target: pick(&batch.target),
                pairs: batch.pairs[start..end].to_vec(),
            }
        });
        parts.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_hold_every_sentence_once_in_order_and_each_has_room() {
        let sentences = |lengths: &[usize]| {
            Sentences::pack(lengths.iter().map(|&length| vec![length as u32; length]))
        };
        let lengths = [3, 9, 1, 30, 4, 4, 4];
        let batch = Batch {
            source: sentences(&lengths),
            target: sentences(&lengths),
            pairs: (0..lengths.len()).collect(),
        };
        let activations = Activations {
            source: 1,
            target: 2,
            ..Activations::default()
        };
        let room = |tokens: u64| Room {
            limit: Some(1000 + tokens * 3 * FLOAT * 3 / 2),
            fixed: 1000,
            activations,
        };
        assert_eq!(room(1000).parts(batch.clone()), vec![batch.clone()]);
        let parts = room(12).parts(batch.clone());
        let pairs: Vec<_> = parts.iter().map(|part| part.pairs.clone()).collect();
        assert_eq!(pairs, [vec![0, 1], vec![2], vec![3], vec![4, 5, 6]]);
        for part in &parts {
            let want: Vec<_> = part.pairs.iter().map(|&pair| lengths[pair]).collect();
            assert_eq!(part.target, sentences(&want));
            assert_eq!(part.source, part.target);
        }
    }
}
