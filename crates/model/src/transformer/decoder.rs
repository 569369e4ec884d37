use attend_ops::{Body, Mask, MultiHead, Pass, Segments, Sublayer};
use candle_core::{Result, Tensor};

use super::block::{Block, Scene, run};
use super::builder::{Builder, Last};
use super::config::TransformerConfig;
use super::singles;
use crate::attention::Scope;
use crate::params::Init;
use crate::{AttentionMap, Memory, State};

/// Figure 1, right: N layers of masked self-attention, attention to the encoder's output, and
/// feed-forward network.
pub(crate) struct Decoder {
    layers: Vec<[Block; 3]>,
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

    /// Every position at once: `[n, d]` to `[n, d]`; adds to `maps` if there are any.
    pub(crate) fn forward(
        &self,
        x: &Tensor,
        sentences: &Segments,
        memory: &Memory,
        maps: Option<&mut Vec<AttentionMap>>,
        pass: &Pass,
    ) -> Result<Tensor> {
        let scene = Scene {
            sentences,
            memory: Some(memory),
        };
        let x = run(
            x,
            self.layers.iter().map(|layer| &layer[..]),
            scene,
            maps,
            pass,
        )?;
        self.last.forward(x, pass)
    }

    /// Every layer's keys and values of the source, for [`Decoder::step`].
    pub(crate) fn read_memory(&self, memory: &Memory, pass: &Pass) -> Result<Vec<Tensor>> {
        let blocks = self.layers.iter().flatten();
        let bodies = blocks.map(|block| &block.sublayer.body);
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
            for block in layer {
                let Sublayer { residual, body } = &block.sublayer;
                x = residual.around(&x, pass, |x| match body {
                    Body::Itself(heads, _) => {
                        let (own, keys) = remember(heads, x, own, state, pass)?;
                        step_block(block, heads, x, (&each, &own, &keys), state, pass)
                    }
                    Body::Memory(heads) => {
                        let sources = (&by_sentence, kv, &state.segments);
                        step_block(block, heads, x, sources, state, pass)
                    }
                    Body::FeedForward(network) => network.forward(x, pass),
                })?;
            }
        }
        self.last.forward(x, pass)
    }
}

/// Queries x of some segments attend to keys and values of others.
fn step_block(
    block: &Block,
    heads: &MultiHead,
    x: &Tensor,
    (queries, kv, keys): (&Segments, &Tensor, &Segments),
    state: &State,
    pass: &Pass,
) -> Result<Tensor> {
    if block.is_fused() {
        return heads.attend(x, queries, kv, keys, pass);
    }
    let scope = Scope::at(state.length, queries.clone(), keys);
    Ok(block.attend(heads, x, kv, &scope, pass)?.0)
}

/// Writes each row into what `own` `[rows, room, 2d]` remembers of it: keys and values
/// `[rows · room, 2d]`, and where those of each row are.
fn remember(
    heads: &MultiHead,
    x: &Tensor,
    own: &Tensor,
    state: &State,
    pass: &Pass,
) -> Result<(Tensor, Segments)> {
    let kv = heads.read(x, pass)?; // (rows, 2d)
    own.slice_set(&kv.unsqueeze(1)?, 1, state.length)?;
    let (rows, room, width) = own.dims3()?;
    let keys = Segments::in_rooms(rows, room, state.length + 1);
    Ok((own.reshape((rows * room, width))?, keys))
}
