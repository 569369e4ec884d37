use attend_batch::Segments;
use attend_ops::{Pass, SourceWeights, StepCache, project, step};
use candle_core::{Device, Result, Tensor};

use super::decoding::Decoding;
use crate::{AttentionMap, DecoderState, KeptRows, Memory, Place};

/// What the decoder keeps between steps with the fused kernels. Its rows may be of different lengths.
pub(super) struct FusedState<'a> {
    model: &'a Decoding,
    cache: StepCache,
    pass: Pass,
}

impl<'a> FusedState<'a> {
    pub(super) fn new(
        model: &'a Decoding,
        memory: &Memory,
        beams: usize,
        pass: &Pass,
    ) -> Result<Self> {
        let cache = StepCache::new(model.d, model.decoder.sublayers());
        let mut state = Self {
            model,
            cache,
            pass: *pass,
        };
        state.add(&memory.states, &memory.segments, beams)?;
        Ok(state)
    }

    fn add(&mut self, states: &Tensor, segments: &Segments, beams: usize) -> Result<()> {
        let sublayers = self.model.decoder.sublayers();
        self.cache.add(states, segments, beams, sublayers)
    }
}

impl DecoderState for FusedState<'_> {
    fn rows(&self) -> usize {
        self.cache.rows()
    }

    fn step(&mut self, last: &[u32], maps: Option<&mut Vec<AttentionMap>>) -> Result<Tensor> {
        let Self { model, cache, pass } = self;
        let x = model.target.embed_step(last, &cache.lengths(), pass)?;
        let mut weights = maps.is_some().then(Vec::new);
        let x = step(&x, model.decoder.sublayers(), cache, weights.as_mut())?;
        if let (Some(maps), Some(weights)) = (maps, weights) {
            for (layer, weights) in weights.into_iter().enumerate() {
                maps.extend(heads(layer, weights, last.len())?);
            }
        }
        let hidden = model.decoder.finish(x, pass)?;
        project(&hidden, &model.output, pass)
    }

    fn select(&mut self, kept: &[KeptRows]) -> Result<()> {
        let kept = kept.iter().map(|kept| (kept.sentence, &kept.rows[..]));
        self.cache.select(kept);
        Ok(())
    }

    fn admit(&mut self, memory: &Memory) -> Result<()> {
        self.add(&memory.states, &memory.segments, 1)
    }
}

/// The maps of each head.
fn heads(layer: usize, weights: SourceWeights, rows: usize) -> Result<Vec<AttentionMap>> {
    let SourceWeights {
        values,
        heads,
        keys,
    } = weights;
    let weights = Tensor::from_vec(values, (heads, rows, keys), &Device::Cpu)?;
    let map = |head| {
        Ok(AttentionMap {
            place: Place::Cross,
            layer,
            head,
            weights: weights.get(head)?,
        })
    };
    (0..heads).map(map).collect()
}
