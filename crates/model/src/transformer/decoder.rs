use attend_ops::{Body, Mask, MultiHead, Pass, Segments, Source, Sublayer, stack};
use candle_core::{Result, Tensor};

use super::config::TransformerConfig;
use super::singles;
use super::sublayer::{Builder, Last};
use crate::params::Init;
use crate::{Memory, State};

/// Figure 1, right: N layers of masked self-attention, attention to the encoder's output, and
/// feed-forward network.
pub(crate) struct Decoder {
    layers: Vec<[Sublayer; 3]>,
    last: Last,
}

impl Decoder {
    pub(crate) fn new(config: &TransformerConfig, init: &mut Init) -> Result<Self> {
        let layer = |n| {
            let layer = format!("model.decoder.layers.{n}");
            let mut builder = Builder {
                layer,
                config,
                init,
            };
            Ok([
                builder.itself(Mask::Causal)?,
                builder.memory()?,
                builder.feed_forward()?,
            ])
        };
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
        let memory = Source {
            states: &memory.states,
            segments: &memory.segments,
        };
        let sublayers = self.layers.iter().flatten();
        let x = stack(x, sentences, Some(memory), sublayers, pass)?;
        self.last.forward(x, pass)
    }

    /// Every layer's keys and values of the source, for [`Decoder::step`].
    pub(crate) fn read_memory(&self, memory: &Memory, pass: &Pass) -> Result<Vec<Tensor>> {
        let bodies = self.layers.iter().flatten().map(|sublayer| &sublayer.body);
        let readers = bodies.filter_map(|body| match body {
            Body::Memory(heads) => Some(heads.read(&memory.states, pass)),
            _ => None,
        });
        readers.collect()
    }

    /// One position, one row per hypothesis: `[rows, d]` to `[rows, d]`.
    pub(crate) fn step(&self, x: &Tensor, state: &State, pass: &Pass) -> Result<Tensor> {
        let rows = x.dim(0)?;
        let (each, by_sentence) = (singles(rows), Segments::packed(state.rows.iter().copied()));
        let mut x = x.clone();
        for ((layer, own), kv) in self.layers.iter().zip(&state.own).zip(&state.source) {
            for Sublayer { residual, body } in layer {
                x = residual.around(&x, pass, |x| match body {
                    Body::Itself(heads, _) => step_itself(heads, x, &each, own, state, pass),
                    Body::Memory(heads) => heads.attend(x, &by_sentence, kv, &state.segments, pass),
                    Body::FeedForward(network) => network.forward(x, pass),
                })?;
            }
        }
        self.last.forward(x, pass)
    }
}

/// Each row attends to itself and to what `own` `[rows, room, 2d]` remembers of it.
fn step_itself(
    heads: &MultiHead,
    x: &Tensor,
    each: &Segments,
    own: &Tensor,
    state: &State,
    pass: &Pass,
) -> Result<Tensor> {
    let kv = heads.read(x, pass)?; // (rows, 2d)
    own.slice_set(&kv.unsqueeze(1)?, 1, state.length)?;
    let (rows, room, width) = own.dims3()?;
    let keys = Segments::in_rooms(rows, room, state.length + 1);
    let own = own.reshape((rows * room, width))?;
    heads.attend(x, each, &own, &keys, pass)
}
