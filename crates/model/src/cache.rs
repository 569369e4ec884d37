use attend_batch::Segments;
use attend_ops::Pass;
use candle_core::{Result, Tensor};

use crate::{AttentionMap, DecoderState, KeptRows};

/// What the decoders of this crate keep between steps.
///
/// Not `Clone`: steps write into its tensors, which a clone would share.
#[derive(Debug)]
pub(crate) struct Cache {
    /// How many tokens each row has read.
    pub(crate) length: usize,
    /// How many rows each sentence has.
    pub(crate) rows: Vec<usize>,
    /// What each row keeps of itself: `[rows, …]`, or `[rows, capacity, …]` for what grows by a token a step.
    pub(crate) own: Vec<Tensor>,
    /// What is kept of the source, `[n, …]`: one copy for all rows of a sentence.
    pub(crate) source: Vec<Tensor>,
    /// The source's sentences.
    pub(crate) segments: Segments,
}

impl Cache {
    /// How many tokens a row of a new cache has capacity for.
    pub(crate) const FIRST_CAPACITY: usize = 16;

    /// The rows of each sentence as segments.
    pub(crate) fn rows_by_sentence(&self) -> Segments {
        Segments::packed(self.rows.iter().copied())
    }

    fn row_count(&self) -> usize {
        self.rows.iter().sum()
    }

    fn select(&mut self, kept: &[KeptRows]) -> Result<()> {
        let rows: Vec<usize> = kept.iter().flat_map(|kept| kept.rows.clone()).collect();
        if rows.len() != self.row_count() || rows.iter().enumerate().any(|(i, &row)| i != row) {
            let index: Vec<u32> = rows.iter().map(|&row| row as u32).collect();
            let index = Tensor::new(index, self.own[0].device())?;
            for own in &mut self.own {
                *own = own.index_select(&index, 0)?;
            }
        }
        if kept.len() != self.segments.count() {
            let ranges = kept.iter().map(|kept| self.segments.range(kept.sentence));
            let ranges: Vec<_> = ranges.collect();
            let index: Vec<u32> = ranges
                .iter()
                .flat_map(|r| r.start as u32..r.end as u32)
                .collect();
            let index = Tensor::new(index, self.own[0].device())?;
            for source in &mut self.source {
                *source = source.index_select(&index, 0)?;
            }
            self.segments = Segments::packed(ranges.into_iter().map(|range| range.len()));
        }
        self.rows = kept.iter().map(|kept| kept.rows.len()).collect();
        Ok(())
    }

    /// Makes sure that every row has capacity for one more token; doubles it if not.
    pub(crate) fn reserve(&mut self) -> Result<()> {
        for own in &mut self.own {
            if own.rank() == 3 && own.dim(1)? == self.length {
                *own = Tensor::cat(&[&*own, &own.zeros_like()?], 1)?;
            }
        }
        Ok(())
    }
}

/// A model that steps with a [`Cache`].
pub(crate) trait StepCached: Send + Sync {
    /// See [`DecoderState::step`].
    fn step(
        &self,
        cache: &mut Cache,
        last: &[u32],
        maps: Option<&mut Vec<AttentionMap>>,
        pass: &Pass,
    ) -> Result<Tensor>;
}

/// A model and the cache of its hypotheses.
pub(crate) struct CachedState<'a, M> {
    pub(crate) model: &'a M,
    pub(crate) cache: Cache,
    pub(crate) pass: Pass,
}

impl<M: StepCached> DecoderState for CachedState<'_, M> {
    fn rows(&self) -> usize {
        self.cache.row_count()
    }

    fn step(&mut self, last: &[u32], maps: Option<&mut Vec<AttentionMap>>) -> Result<Tensor> {
        let logits = self.model.step(&mut self.cache, last, maps, &self.pass)?;
        self.cache.length += 1;
        Ok(logits)
    }

    fn select(&mut self, kept: &[KeptRows]) -> Result<()> {
        self.cache.select(kept)
    }
}
