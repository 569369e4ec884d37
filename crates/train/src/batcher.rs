use attend_data::{Batch, Batches, Position};

use crate::memory_budget::MemoryBudget;

/// Gives out the training batches in their order, cut into parts that fit into memory.
pub(crate) struct Batcher {
    batches: Batches,
    memory: MemoryBudget,
}

impl Batcher {
    pub(crate) fn new(batches: Batches, memory: MemoryBudget) -> Self {
        Self { batches, memory }
    }

    /// The parts of the next batch, and the position after it.
    pub(crate) fn next_batch(&mut self) -> (Vec<Batch>, Position) {
        let (batch, position) = self.batches.next_batch();
        (self.memory.parts(batch), position)
    }

    /// Batches of the current epoch.
    pub(crate) fn epoch_len(&self) -> usize {
        self.batches.epoch_len()
    }
}
