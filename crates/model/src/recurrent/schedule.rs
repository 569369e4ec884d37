use std::ops::Range;

use attend_ops::Segments;
use candle_core::{Result, Tensor};

use crate::Memory;

/// Which sentences step together: the longest first, so that those still going at any time are the first
/// few, and a step's rows are next to each other.
pub(crate) struct Schedule {
    /// Sentences, the longest first.
    order: Vec<usize>,
    /// For every time, how many sentences are still going.
    going: Vec<usize>,
    /// For every row, time after time, its row in the packed batch.
    rows: Vec<u32>,
}

impl Schedule {
    pub(crate) fn new(targets: &Segments) -> Self {
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
        Self { order, going, rows }
    }

    /// For every row, time after time, its row in the packed batch.
    pub(crate) fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// The rows of each step.
    pub(crate) fn steps(&self) -> impl Iterator<Item = Range<usize>> {
        let mut start = 0;
        self.going.iter().map(move |count| {
            start += count;
            start - count..start
        })
    }

    /// One query for each sentence that is still going.
    pub(crate) fn going(&self, time: usize) -> Segments {
        let still = |rank: usize| usize::from(rank < self.going[time]);
        Segments::packed((0..self.order.len()).map(still))
    }

    /// The memory with its sentences in this order.
    pub(crate) fn sorted(&self, memory: &Memory) -> Result<Memory> {
        if self.order.is_sorted() {
            return Ok(memory.clone());
        }
        let device = memory.states.device();
        let ranges = || self.order.iter().map(|&i| memory.segments.range(i));
        let rows: Vec<u32> = ranges().flatten().map(|row| row as u32).collect();
        let order: Vec<u32> = self.order.iter().map(|&i| i as u32).collect();
        let (rows, order) = (Tensor::new(rows, device)?, Tensor::new(order, device)?);
        let finals = memory.finals.iter();
        Ok(Memory {
            states: memory.states.index_select(&rows, 0)?,
            segments: Segments::packed(ranges().map(|range| range.len())),
            finals: finals
                .map(|last| last.index_select(&order, 0))
                .collect::<Result<_>>()?,
        })
    }

    /// Rows of all steps, one step after the other, back in the order of the packed batch.
    pub(crate) fn unsorted(&self, x: &Tensor) -> Result<Tensor> {
        let mut places = vec![0u32; self.rows.len()];
        for (place, &row) in self.rows.iter().enumerate() {
            places[row as usize] = place as u32;
        }
        x.index_select(&Tensor::new(places, x.device())?, 0)
    }

    /// The segments of a memory that [`Schedule::sorted`] made, as they were.
    pub(crate) fn keys(&self, sorted: &Memory) -> Segments {
        let mut lengths = vec![0; self.order.len()];
        for (&sentence, &length) in self.order.iter().zip(sorted.segments.lengths()) {
            lengths[sentence] = length;
        }
        Segments::packed(lengths)
    }
}
