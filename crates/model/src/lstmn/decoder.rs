use attend_batch::Segments;
use attend_ops::{
    Activation, Fusion, Linear, Pairs, Pass, RowDropout, Shared, SourceSoFar, SourceTape,
    TapeSoFar, beside, linear, linear_activated, tape_step,
};
use candle_core::{DType, Device, Result, Tensor};

use super::config::LstmnConfig;
use super::layer::Layer;
use super::own_map;
use crate::cache::Cache;
use crate::weights::Init;
use crate::{AttentionMap, Memory, Place};

/// Layers that read from left to right, the lowest of which also reads the source.
pub(super) struct Decoder {
    layers: Vec<Layer>,
    fusion: Fusion,
    /// The keys of the source: W γ, with a bias in shallow fusion, as in Bahdanau et al. 2015.
    key: Linear,
    /// With shallow fusion, state, context and previous token predict the next one together.
    combine: Option<Linear>,
    width: usize,
}

/// The tensors that a row keeps of a layer: keys `[rows, capacity, h]`, states `[rows, capacity, 2h]`, and what it
/// read of its own tape in the last step, `[rows, h]`. The lowest layer has [`TapeSoFar::before`], too; it is last.
const KEPT: usize = 3;

impl Decoder {
    pub(super) fn new(config: &LstmnConfig, init: &mut Init) -> Result<Self> {
        let (e, h) = (config.d_embed, config.d_hidden);
        let fusion = Fusion::from(config.fusion);
        let layers = (0..config.decoder_layers).map(|n| {
            let name = format!("model.decoder.layers.{n}");
            match n {
                0 => Layer::new(&name, e, h, 0.0, Some(fusion), init),
                _ => Layer::new(&name, h, h, config.dropout, None, init),
            }
        });
        let layers = layers.collect::<Result<_>>()?;
        let (key, combine) = ("model.decoder.source_key", "model.decoder.combine");
        let (key, combine) = match fusion {
            Fusion::Shallow => (
                init.linear(key, h, h)?,
                Some(init.linear(combine, 2 * h + e, h)?),
            ),
            Fusion::Deep => (init.matrix(key, h, h)?, None),
        };
        Ok(Self {
            layers,
            fusion,
            key,
            combine,
            width: h,
        })
    }

    /// What the decoder reads of the source. `tapes` `[m, 2h]` are the encoder's.
    pub(super) fn source(
        &self,
        memory: &Memory,
        tapes: &Tensor,
        pass: &Pass,
    ) -> Result<SourceTape> {
        Ok(SourceTape {
            keys: linear(&memory.states, &[&self.key], pass)?,
            values: match self.fusion {
                Fusion::Shallow => memory.states.clone(),
                Fusion::Deep => tapes.clone(),
            },
            segments: memory.segments.clone(),
        })
    }

    /// Teacher forcing: embedded tokens `[n, e]` to the states that predict tokens `[n, h]`, and how every layer
    /// attended, in evaluation.
    pub(super) fn forward(
        &self,
        x: &Tensor,
        sentences: &Segments,
        source: &SourceTape,
        pass: &Pass,
    ) -> Result<(Tensor, Vec<AttentionMap>)> {
        let (mut below, mut context, mut maps) = (x.clone(), None, Vec::new());
        for (number, layer) in self.layers.iter().enumerate() {
            let over = (number == 0).then_some(source);
            let tapes = layer.forward(&below, sentences, over, pass)?;
            below = tapes.states.narrow(1, 0, self.width)?.contiguous()?;
            context = context.or(tapes.context);
            if let Some(weights) = tapes.weights {
                maps.push(own_map(Place::Decoder, number, weights.own));
                let source = weights.source;
                maps.extend(source.map(|weights| own_map(Place::Cross, number, weights)));
            }
        }
        Ok((self.readout(&below, context.as_ref(), x, pass)?, maps))
    }

    /// The state that predicts a token.
    fn readout(
        &self,
        top: &Tensor,
        context: Option<&Tensor>,
        x: &Tensor,
        pass: &Pass,
    ) -> Result<Tensor> {
        let (Some(combine), Some(context)) = (&self.combine, context) else {
            return Ok(top.clone());
        };
        let all = beside(&beside(top, context, pass)?, x, pass)?;
        linear_activated(&all, combine, Activation::Tanh, &RowDropout::NONE, pass)
    }

    /// What rows keep of themselves before the first token.
    pub(super) fn start(&self, rows: usize, device: &Device) -> Result<Vec<Tensor>> {
        let h = self.width;
        let tape = |width| Tensor::zeros((rows, Cache::FIRST_CAPACITY, width), DType::F32, device);
        let last = || Tensor::zeros((rows, h), DType::F32, device);
        let mut own = Vec::with_capacity(KEPT * self.layers.len() + 1);
        for _ in &self.layers {
            own.extend([tape(h)?, tape(2 * h)?, last()?]);
        }
        own.push(last()?);
        Ok(own)
    }

    /// One position, one row per hypothesis: x `[rows, e]` to `[rows, h]`; adds the attention to the source to
    /// `maps` if there are any.
    pub(super) fn step(
        &self,
        x: &Tensor,
        cache: &mut Cache,
        maps: Option<&mut Vec<AttentionMap>>,
        pass: &Pass,
    ) -> Result<Tensor> {
        let time = cache.length;
        let pairs = Pairs {
            queries: cache.rows_by_sentence(),
            keys: cache.segments.clone(),
        };
        let [keys, values] = [0, 1].map(|i| Shared::new(&cache.source[i], pass));
        let source = SourceSoFar {
            keys: &keys?,
            values: &values?,
            pairs: &pairs,
        };
        let (mut below, mut context) = (x.clone(), None);
        let mut map = None;
        for (number, layer) in self.layers.iter().enumerate() {
            let own = &cache.own[KEPT * number..][..KEPT];
            let (rows, capacity, _) = own[0].dims3()?;
            let before = &cache.own[KEPT * self.layers.len()];
            let so_far = TapeSoFar {
                keys: &own[0].flatten(0, 1)?,
                states: &own[1].flatten(0, 1)?,
                places: &Segments::with_capacity(rows, capacity, time),
                summary: &own[2],
                before: Some(before),
            };
            let over = (number == 0).then_some(&source);
            let input = layer.input(&below, pass)?;
            let step = tape_step(&input, &layer.tape, &so_far, over, pass)?;
            let [key, state, summary] = [&step.key, &step.state, &step.summary].map(Tensor::detach);
            own[0].slice_set(&key.unsqueeze(1)?, 1, time)?;
            own[1].slice_set(&state.unsqueeze(1)?, 1, time)?;
            below = state.narrow(1, 0, self.width)?.contiguous()?;
            cache.own[KEPT * number + 2] = summary;
            if number == 0 {
                context = step.read.map(|read| read.detach());
                let last = match (self.fusion, &context) {
                    (Fusion::Deep, Some(read)) => read.clone(),
                    _ => below.clone(),
                };
                cache.own[KEPT * self.layers.len()] = last;
                map = step.source;
            }
        }
        if let (Some(maps), Some(weights)) = (maps, map) {
            maps.push(own_map(Place::Cross, 0, weights.detach()));
        }
        self.readout(&below, context.as_ref(), x, pass)
    }
}
