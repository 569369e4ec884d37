use std::ops::Range;

use attend_batch::Segments;
use candle_core::{Result, Tensor};

use super::encoded::Encoded;

/// The order in which the decoder steps through a batch. Sentences are sorted by length, the longest first, so
/// that the sentences that have a token at a time step are the first ones. The rows of a step are contiguous.
pub(super) struct Schedule {
    /// Sentence indices, the longest first.
    order: Vec<usize>,
    /// The sentences in this order.
    sorted: Segments,
    /// The number of sentences that have a token at each time step.
    going: Vec<usize>,
    /// For every row in time-major order, its row in the packed batch.
    rows: Vec<u32>,
}

impl Schedule {
    pub(super) fn new(targets: &Segments) -> Self {
        let lengths = targets.lengths();
        let mut order: Vec<usize> = (0..lengths.len()).collect();
        order.sort_by_key(|&sentence| std::cmp::Reverse(lengths[sentence]));
        let still = |time: usize| lengths.iter().filter(|&&length| length > time).count();
        let going: Vec<usize> = (0..targets.longest()).map(still).collect();
        let steps = going.iter().enumerate();
        let rows = steps.flat_map(|(time, &count)| {
            let sentences = order[..count].iter();
            sentences.map(move |&sentence| (targets.range(sentence).start + time) as u32)
        });
        let rows = rows.collect();
        let sorted = targets.select(order.iter().copied());
        Self {
            order,
            sorted,
            going,
            rows,
        }
    }

    /// For every row in time-major order, its row in the packed batch.
    pub(super) fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// The range of time-major rows of each step.
    pub(super) fn steps(&self) -> impl Iterator<Item = Range<usize>> {
        let mut start = 0;
        self.going.iter().map(move |count| {
            start += count;
            start - count..start
        })
    }

    /// The segments of a step's queries: one query for each sentence that has a token at this time step.
    pub(super) fn going(&self, time: usize) -> Segments {
        let still = |rank: usize| usize::from(rank < self.going[time]);
        self.sorted.with_lengths((0..self.order.len()).map(still))
    }

    /// The memory with its sentences in this order, the longest target first.
    pub(super) fn sorted(&self, memory: &Encoded) -> Result<Encoded> {
        if self.order.is_sorted() {
            return Ok(memory.clone());
        }
        let device = memory.states.device();
        let ranges = || self.order.iter().map(|&i| memory.segments.range(i));
        let rows: Vec<u32> = ranges().flatten().map(|row| row as u32).collect();
        let order: Vec<u32> = self.order.iter().map(|&i| i as u32).collect();
        let (rows, order) = (Tensor::new(rows, device)?, Tensor::new(order, device)?);
        let finals = memory.finals.iter();
        Ok(Encoded {
            states: memory.states.index_select(&rows, 0)?,
            segments: memory.segments.select(self.order.iter().copied()),
            finals: finals
                .map(|last| last.index_select(&order, 0))
                .collect::<Result<_>>()?,
        })
    }

    /// Reorders time-major rows to the order of the packed batch.
    pub(super) fn unsorted(&self, x: &Tensor) -> Result<Tensor> {
        let mut inverse = vec![0u32; self.rows.len()];
        for (position, &row) in self.rows.iter().enumerate() {
            inverse[row as usize] = position as u32;
        }
        x.index_select(&Tensor::new(inverse, x.device())?, 0)
    }

    /// The segments of the memory before [`Schedule::sorted`].
    pub(super) fn keys(&self, sorted: &Encoded) -> Segments {
        let mut ranks = vec![0; self.order.len()];
        for (rank, &sentence) in self.order.iter().enumerate() {
            ranks[sentence] = rank;
        }
        sorted.segments.select(ranks)
    }
}
