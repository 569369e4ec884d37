use std::path::PathBuf;
use std::sync::Arc;

use attend_comm::{Comm, share};
use attend_data::{Batch, Batches, Mixture, Position};

use crate::Result;
use crate::memory_budget::MemoryBudget;

/// Gives out the training batches in their order, cut into parts that fit into memory.
pub(crate) struct Batcher {
    batches: Batches,
    mixture: Arc<Mixture>,
    memory: MemoryBudget,
    comm: Arc<dyn Comm>,
    /// The files of each input of each corpus, for messages.
    inputs: Vec<Vec<PathBuf>>,
}

/// A batch of all ranks together.
pub(crate) struct NextBatch {
    /// What this rank computes, in parts that fit into memory.
    pub(crate) parts: Vec<Batch>,
    /// Target tokens of the whole batch.
    pub(crate) tokens: usize,
    /// The pairs of the whole batch.
    pub(crate) pairs: Vec<usize>,
    /// That after the batch.
    pub(crate) position: Position,
}

impl Batcher {
    pub(crate) fn new(
        batches: Batches,
        mixture: Arc<Mixture>,
        memory: MemoryBudget,
        comm: Arc<dyn Comm>,
        inputs: Vec<Vec<PathBuf>>,
    ) -> Self {
        Self {
            batches,
            mixture,
            memory,
            comm,
            inputs,
        }
    }

    /// The next batch for this step.
    pub(crate) fn next_batch(&mut self, step: u64) -> Result<NextBatch> {
        let (batch, position) = self.batches.next_batch(step)?;
        let (tokens, pairs) = (batch.target.ids.len(), batch.pairs.clone());
        let own = self.own(batch);
        Ok(NextBatch {
            parts: own.map_or(Vec::new(), |own| self.memory.parts(own)),
            tokens,
            pairs,
            position,
        })
    }

    /// What this rank computes of a batch: consecutive sentences that have about as many tokens as those of the other
    /// ranks. Nothing if there are fewer sentences than ranks.
    fn own(&self, batch: Batch) -> Option<Batch> {
        if self.comm.is_alone() {
            return Some(batch);
        }
        let (sources, targets) = (batch.source.segments(), &batch.target.segments);
        let lengths = sources.lengths().iter().zip(targets.lengths());
        let lengths = lengths.map(|(source, target)| source + target);
        let own = share(lengths, self.comm.rank(), self.comm.size());
        (!own.is_empty()).then(|| batch.part(own))
    }

    /// Batches of the current epoch, about.
    pub(crate) fn epoch_len(&self) -> usize {
        self.batches.epoch_len()
    }

    /// Batches of an epoch of a stage.
    pub(crate) fn count(&self, stage: u64) -> u64 {
        self.batches.count(stage, 0)
    }

    /// The numbers of these pairs among all pairs of the training data, counted from 1.
    pub(crate) fn numbers(&self, pairs: &[usize]) -> Vec<usize> {
        let number = |&pair: &usize| {
            let (corpus, index) = self.mixture.find(pair)?;
            let mut datasets = self.mixture.datasets();
            let before: u64 = datasets
                .by_ref()
                .take(corpus)
                .map(|d| d.counts().read)
                .sum();
            Some((before + datasets.next()?.ordinal(index)) as usize + 1)
        };
        pairs.iter().filter_map(number).collect()
    }

    /// Where the first of these pairs come from, and how many more there are.
    pub(crate) fn origins(&self, pairs: &[usize]) -> String {
        const SHOWN: usize = 8;
        let shown: Vec<String> = pairs
            .iter()
            .take(SHOWN)
            .map(|&pair| self.origin(pair))
            .collect();
        match pairs.len().saturating_sub(SHOWN) {
            0 => shown.join(", "),
            more => format!("{} and {more} more", shown.join(", ")),
        }
    }

    /// A file, and the number of the pair in it, counted from 1.
    fn origin(&self, pair: usize) -> String {
        let Some((corpus, index)) = self.mixture.find(pair) else {
            return format!("pair {pair}");
        };
        let Some(dataset) = self.mixture.datasets().nth(corpus) else {
            return format!("pair {pair}");
        };
        let (input, place) = dataset.origin(index);
        let file = self.inputs.get(corpus).and_then(|inputs| inputs.get(input));
        let file = file.map(|file| file.display().to_string());
        format!("{}:{}", file.unwrap_or_default(), place + 1)
    }
}
