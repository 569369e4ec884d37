use attend_ops::{Mask, Pass, Segments};
use candle_core::{Result, Tensor};

use super::config::TransformerConfig;
use super::singles;
use super::sublayer::{FeedForward, Last, MultiHead, Residual};
use crate::params::Init;
use crate::{Memory, State};

/// Figure 1, right: N layers of masked self-attention, attention to the encoder's output, and
/// feed-forward network.
pub(crate) struct Decoder {
    layers: Vec<Layer>,
    last: Last,
}

struct Layer {
    attention: MultiHead,
    after_attention: Residual,
    cross: MultiHead,
    after_cross: Residual,
    feed_forward: FeedForward,
    after_feed_forward: Residual,
}

impl Decoder {
    pub(crate) fn new(config: &TransformerConfig, init: &mut Init) -> Result<Self> {
        let layer = |n| Layer::new(&format!("model.decoder.layers.{n}"), config, init);
        Ok(Self {
            layers: (0..config.decoder_layers)
                .map(layer)
                .collect::<Result<_>>()?,
            last: Last::new("model.decoder.layer_norm", config, init)?,
        })
    }

    /// Every position at once: `[n, d]` to `[n, d]`.
    pub(crate) fn forward(
        &self,
        x: &Tensor,
        sentences: &Segments,
        memory: &Memory,
        pass: &Pass,
    ) -> Result<Tensor> {
        let mut x = x.clone();
        for layer in &self.layers {
            let itself = |x: &Tensor| layer.attention.to_itself(x, sentences, Mask::Causal, pass);
            let kv = layer.cross.read(&memory.states, pass)?; // (m, 2d)
            let source = Source {
                kv: &kv,
                keys: &memory.segments,
                queries: sentences,
            };
            x = layer.forward(&x, itself, source, pass)?;
        }
        self.last.forward(x, pass)
    }

    /// Every layer's keys and values of the source, for [`Decoder::step`].
    pub(crate) fn read_memory(&self, memory: &Memory, pass: &Pass) -> Result<Vec<Tensor>> {
        let layers = self.layers.iter();
        layers
            .map(|layer| layer.cross.read(&memory.states, pass))
            .collect()
    }

    /// One position, one row per hypothesis: `[rows, d]` to `[rows, d]`.
    pub(crate) fn step(&self, x: &Tensor, state: &State, pass: &Pass) -> Result<Tensor> {
        let rows = x.dim(0)?;
        let (each, by_sentence) = (singles(rows), Segments::packed(state.rows.iter().copied()));
        let mut x = x.clone();
        for ((layer, own), kv) in self.layers.iter().zip(&state.own).zip(&state.source) {
            let itself = |x: &Tensor| {
                let kv = layer.attention.read(x, pass)?; // (rows, 2d)
                own.slice_set(&kv.unsqueeze(1)?, 1, state.length)?;
                let (_, room, width) = own.dims3()?;
                let keys = Segments::in_rooms(rows, room, state.length + 1);
                let own = own.reshape((rows * room, width))?;
                layer.attention.attend(x, &each, &own, &keys, pass)
            };
            let source = Source {
                kv,
                keys: &state.segments,
                queries: &by_sentence,
            };
            x = layer.forward(&x, itself, source, pass)?;
        }
        self.last.forward(x, pass)
    }
}

/// What a layer's cross-attention reads, and which queries belong to which source sentence.
struct Source<'a> {
    kv: &'a Tensor,
    keys: &'a Segments,
    queries: &'a Segments,
}

impl Layer {
    fn new(name: &str, config: &TransformerConfig, init: &mut Init) -> Result<Self> {
        let part = |part: &str| format!("{name}.{part}");
        Ok(Self {
            attention: MultiHead::new(&part("self_attn"), config, init)?,
            after_attention: Residual::new(&part("self_attn_layer_norm"), config, init)?,
            cross: MultiHead::new(&part("encoder_attn"), config, init)?,
            after_cross: Residual::new(&part("encoder_attn_layer_norm"), config, init)?,
            feed_forward: FeedForward::new(name, config, init)?,
            after_feed_forward: Residual::new(&part("final_layer_norm"), config, init)?,
        })
    }

    fn forward(
        &self,
        x: &Tensor,
        itself: impl FnOnce(&Tensor) -> Result<Tensor>,
        source: Source,
        pass: &Pass,
    ) -> Result<Tensor> {
        let Source { kv, keys, queries } = source;
        let x = self.after_attention.around(x, pass, itself)?;
        let x = self
            .after_cross
            .around(&x, pass, |x| self.cross.attend(x, queries, kv, keys, pass))?;
        self.after_feed_forward
            .around(&x, pass, |x| self.feed_forward.forward(x, pass))
    }
}
