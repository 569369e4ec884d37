use attend_batch::Segments;
use attend_ops::{Linear, Mask, Pass, linear};
use candle_core::{Result, Tensor};

use super::attention_block::AttentionBlock;
use super::builder::Builder;
use super::config::SnailConfig;
use super::convolution::Convolution;
use crate::attention::Scope;
use crate::cache::Cache;
use crate::weights::Init;
use crate::{AttentionMap, Memory, Place};

/// Blocks of convolutions, attention to what came before, and attention to the encoder's output.
pub(super) struct Decoder {
    blocks: Vec<DecoderBlock>,
    out: Linear,
    /// All channels before `out`.
    width: usize,
}

struct DecoderBlock {
    convolutions: Vec<Convolution>,
    attention: AttentionBlock,
    memory: AttentionBlock,
}

impl Decoder {
    pub(super) fn new(config: &SnailConfig, init: &mut Init) -> Result<Self> {
        let mut builder = Builder::new(config, init, "model.decoder");
        let blocks = (0..config.blocks).map(|b| {
            Ok(DecoderBlock {
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
            let attentions = [
                (Place::Decoder, &block.attention, &itself),
                (Place::Cross, &block.memory, &source),
            ];
            for (place, attention, scope) in attentions {
                let states = match place {
                    Place::Cross => &memory.states,
                    _ => &x,
                };
                let [keys, values] = attention.keys_values(states, pass)?;
                let (y, weights) = attention.forward(&x, [&keys, &values], scope, pass)?;
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
    pub(super) fn source_keys_values(&self, memory: &Memory, pass: &Pass) -> Result<Vec<Tensor>> {
        let mut all = Vec::new();
        for block in &self.blocks {
            all.extend(block.memory.keys_values(&memory.states, pass)?);
        }
        Ok(all.iter().map(Tensor::detach).collect())
    }

    /// The widths of what each row keeps of every token: all its channels, which begin with the input of every
    /// layer, then the key and the value of every block.
    pub(super) fn widths(&self) -> Result<Vec<usize>> {
        let mut widths = vec![self.width];
        for DecoderBlock { attention, .. } in &self.blocks {
            for layer in [&attention.key, &attention.value] {
                widths.push(layer.weight.value().dim(0)?);
            }
        }
        Ok(widths)
    }

    /// One position, one row per hypothesis: `[rows, d]` to `[rows, d]`; adds the cross-attention to `maps` if
    /// there are any.
    pub(super) fn step(
        &self,
        x: &Tensor,
        cache: &Cache,
        mut maps: Option<&mut Vec<AttentionMap>>,
        pass: &Pass,
    ) -> Result<Tensor> {
        let (features, own) = (&cache.own[0], &cache.own[1..]);
        let (rows, capacity, _) = features.dims3()?;
        let each = Segments::packed(std::iter::repeat_n(1, rows));
        let so_far = Segments::with_capacity(rows, capacity, cache.length + 1);
        let itself = Scope::at(cache.length, each, &so_far);
        let source = Scope::at(cache.length, cache.rows_by_sentence(), &cache.segments);
        let mut x = x.clone();
        let caches = own.chunks_exact(2).zip(cache.source.chunks_exact(2));
        for (layer, (block, (own, memory))) in self.blocks.iter().zip(caches).enumerate() {
            for convolution in &block.convolutions {
                x = convolution.step(&x, features, cache.length, pass)?;
            }
            let new = block.attention.keys_values(&x, pass)?;
            for (own, new) in own.iter().zip(&new) {
                append(own, new, cache.length)?;
            }
            let (keys, values) = (own[0].flatten(0, 1)?, own[1].flatten(0, 1)?);
            (x, _) = block
                .attention
                .forward(&x, [&keys, &values], &itself, pass)?;
            let memory = [&memory[0], &memory[1]];
            let weights;
            (x, weights) = block.memory.forward(&x, memory, &source, pass)?;
            if let Some(maps) = &mut maps {
                maps.push(AttentionMap {
                    place: Place::Cross,
                    layer,
                    head: 0,
                    weights,
                });
            }
        }
        append(features, &x, cache.length)?;
        linear(&x, &[&self.out], pass)
    }
}

/// Writes each row to position `length` of its cache `[rows, capacity, …]`.
fn append(cache: &Tensor, new: &Tensor, length: usize) -> Result<()> {
    cache.slice_set(&new.unsqueeze(1)?, 1, length)
}
