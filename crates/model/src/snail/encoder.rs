use attend_batch::Segments;
use attend_ops::{Linear, Mask, Pass, linear};
use candle_core::{Result, Tensor};

use super::attention_block::AttentionBlock;
use super::builder::Builder;
use super::config::SnailConfig;
use super::convolution::Convolution;
use crate::attention::Scope;
use crate::weights::Init;
use crate::{AttentionMap, Place};

/// Blocks of causal convolutions and attention to the whole sentence.
pub(super) struct Encoder {
    blocks: Vec<EncoderBlock>,
    out: Linear,
}

struct EncoderBlock {
    convolutions: Vec<Convolution>,
    attention: AttentionBlock,
}

impl Encoder {
    pub(super) fn new(config: &SnailConfig, init: &mut Init) -> Result<Self> {
        let mut builder = Builder::new(config, init, "model.encoder");
        let blocks = (0..config.blocks).map(|b| {
            Ok(EncoderBlock {
                convolutions: builder.convolutions(b)?,
                attention: builder.itself(b)?,
            })
        });
        Ok(Self {
            blocks: blocks.collect::<Result<_>>()?,
            out: builder.out()?,
        })
    }

    /// `[n, d]` to `[n, d]`, and the attention maps.
    pub(super) fn forward(
        &self,
        x: &Tensor,
        sentences: &Segments,
        pass: &Pass,
    ) -> Result<(Tensor, Vec<AttentionMap>)> {
        let scope = Scope::new(sentences, sentences, Mask::Full);
        let mut maps = Vec::new();
        let mut x = x.clone();
        for (layer, block) in self.blocks.iter().enumerate() {
            for convolution in &block.convolutions {
                x = convolution.forward(&x, sentences, pass)?;
            }
            let [keys, values] = block.attention.keys_values(&x, pass)?;
            let (y, weights) = block
                .attention
                .forward(&x, [&keys, &values], &scope, pass)?;
            x = y;
            maps.push(AttentionMap {
                place: Place::Encoder,
                layer,
                head: 0,
                weights,
            });
        }
        Ok((linear(&x, &[&self.out], pass)?, maps))
    }
}
