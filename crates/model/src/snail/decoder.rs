use attend_ops::{Linear, Mask, Pass, Segments, linear};
use candle_core::{Result, Tensor};

use super::builder::Builder;
use super::config::SnailConfig;
use super::convolution::Convolution;
use super::reader::Reader;
use crate::attention::Scope;
use crate::params::Init;
use crate::{AttentionMap, Memory, Place, State};

/// Blocks of convolutions, attention to what came before, and attention to the encoder's output.
pub(super) struct Decoder {
    blocks: Vec<Block>,
    out: Linear,
    /// All channels before `out`.
    width: usize,
}

struct Block {
    convolutions: Vec<Convolution>,
    attention: Reader,
    memory: Reader,
}

impl Decoder {
    pub(super) fn new(config: &SnailConfig, init: &mut Init) -> Result<Self> {
        let mut builder = Builder::new(config, init, "model.decoder");
        let blocks = (0..config.blocks).map(|b| {
            Ok(Block {
                convolutions: builder.convolutions(b)?,
                attention: builder.itself(b)?,
                memory: builder.memory(b)?,
            })
        });
        Ok(Self {
            blocks: blocks.collect::<Result<_>>()?,
            out: builder.out()?,
            width: builder.width(),
        })
    }

    /// Every position at once: `[n, d]` to `[n, d]`, and how it attended.
    pub(super) fn forward(
        &self,
        x: &Tensor,
        sentences: &Segments,
        memory: &Memory,
        pass: &Pass,
    ) -> Result<(Tensor, Vec<AttentionMap>)> {
        let itself = Scope::new(sentences, sentences, Mask::Causal);
        let source = Scope::new(sentences, &memory.segments, Mask::Full);
        let mut maps = Vec::new();
        let mut x = x.clone();
        for (layer, block) in self.blocks.iter().enumerate() {
            for convolution in &block.convolutions {
                x = convolution.forward(&x, sentences, pass)?;
            }
            let readers = [
                (Place::Decoder, &block.attention, &itself),
                (Place::Cross, &block.memory, &source),
            ];
            for (place, reader, scope) in readers {
                let read = match place {
                    Place::Cross => &memory.states,
                    _ => &x,
                };
                let [keys, values] = reader.read(read, pass)?;
                let (y, weights) = reader.forward(&x, [&keys, &values], scope, pass)?;
                x = y;
                maps.push(AttentionMap {
                    place,
                    layer,
                    head: 0,
                    weights,
                });
            }
        }
        Ok((linear(&x, &[&self.out], pass)?, maps))
    }

    /// Every block's keys and values of the source, for [`Decoder::step`].
    pub(super) fn read(&self, memory: &Memory, pass: &Pass) -> Result<Vec<Tensor>> {
        let mut read = Vec::new();
        for block in &self.blocks {
            read.extend(block.memory.read(&memory.states, pass)?);
        }
        Ok(read.iter().map(Tensor::detach).collect())
    }

    /// Widths of what each row remembers of every token: all its channels, which begin with what any layer
    /// has for input, then every block's key and value.
    pub(super) fn widths(&self) -> Result<Vec<usize>> {
        let mut widths = vec![self.width];
        for Block { attention, .. } in &self.blocks {
            for layer in [&attention.key, &attention.value] {
                widths.push(layer.weight.value().dim(0)?);
            }
        }
        Ok(widths)
    }

    /// One position, one row per hypothesis: `[rows, d]` to `[rows, d]`.
    pub(super) fn step(&self, x: &Tensor, state: &State, pass: &Pass) -> Result<Tensor> {
        let (features, own) = (&state.own[0], &state.own[1..]);
        let (rows, room, _) = features.dims3()?;
        let each = Segments::packed(std::iter::repeat_n(1, rows));
        let so_far = Segments::in_rooms(rows, room, state.length + 1);
        let itself = Scope::at(state.length, each, &so_far);
        let by_sentence = Segments::packed(state.rows.iter().copied());
        let source = Scope::at(state.length, by_sentence, &state.segments);
        let mut x = x.clone();
        let caches = own.chunks_exact(2).zip(state.source.chunks_exact(2));
        for (block, (own, read)) in self.blocks.iter().zip(caches) {
            for convolution in &block.convolutions {
                x = convolution.step(&x, features, state.length, pass)?;
            }
            let new = block.attention.read(&x, pass)?;
            for (own, new) in own.iter().zip(&new) {
                remember(own, new, state.length)?;
            }
            let (keys, values) = (own[0].flatten(0, 1)?, own[1].flatten(0, 1)?);
            (x, _) = block
                .attention
                .forward(&x, [&keys, &values], &itself, pass)?;
            let read = [&read[0], &read[1]];
            (x, _) = block.memory.forward(&x, read, &source, pass)?;
        }
        remember(features, &x, state.length)?;
        linear(&x, &[&self.out], pass)
    }
}

/// Writes each row into its place of what `own` `[rows, room, …]` remembers.
fn remember(own: &Tensor, new: &Tensor, place: usize) -> Result<()> {
    own.slice_set(&new.unsqueeze(1)?, 1, place)
}
