//! Creates the layers of the encoder and decoder, and their named parameters.

use attend_ops::{DropoutSite, Linear};
use candle_core::Result;

use super::attention_block::AttentionBlock;
use super::config::SnailConfig;
use super::convolution::Convolution;
use crate::ScoreKind;
use crate::attention::{Align, Attention, Context, Score, ScoreOptions};
use crate::weights::Init;

/// Creates the layers of the encoder or decoder in order. Each layer adds channels to the input of the next.
pub(super) struct Builder<'a, 'b> {
    config: &'a SnailConfig,
    init: &'a mut Init<'b>,
    /// `model.encoder` or `model.decoder`.
    side: &'static str,
    /// Output channels of the last layer created.
    width: usize,
}

impl<'a, 'b> Builder<'a, 'b> {
    pub(super) fn new(config: &'a SnailConfig, init: &'a mut Init<'b>, side: &'static str) -> Self {
        let width = config.d_model;
        Self {
            config,
            init,
            side,
            width,
        }
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Convolutions whose combined receptive field is at least the span (Algorithm 2).
    pub(super) fn convolutions(&mut self, block: usize) -> Result<Vec<Convolution>> {
        let SnailConfig {
            filters, dropout, ..
        } = *self.config;
        let dilations = self.config.dilations().enumerate();
        let convolutions = dilations.map(|(i, dilation)| {
            let name = format!("{}.blocks.{block}.convolutions.{i}", self.side);
            let inputs = 2 * self.width;
            self.width += filters;
            Ok(Convolution {
                gates: self.init.linear(&name, inputs, 2 * filters)?,
                dilation,
                drop: DropoutSite::new(dropout, &name),
            })
        });
        convolutions.collect()
    }

    /// Self-attention.
    pub(super) fn itself(&mut self, block: usize) -> Result<AttentionBlock> {
        self.attention(block, "attention", self.width)
    }

    /// Attention to the encoder's output.
    pub(super) fn memory(&mut self, block: usize) -> Result<AttentionBlock> {
        self.attention(block, "memory", self.config.d_model)
    }

    /// Attention to states of width `width_attended`.
    fn attention(
        &mut self,
        block: usize,
        name: &str,
        width_attended: usize,
    ) -> Result<AttentionBlock> {
        let name = format!("{}.blocks.{block}.{name}", self.side);
        let SnailConfig {
            d_key,
            d_value,
            dropout,
            ..
        } = *self.config;
        let (init, width) = (&mut *self.init, self.width);
        self.width += d_value;
        Ok(AttentionBlock {
            query: init.linear(&format!("{name}.query"), width, d_key)?,
            key: init.matrix(&format!("{name}.key"), width_attended, d_key)?,
            value: init.linear(&format!("{name}.value"), width_attended, d_value)?,
            attention: Attention {
                score: Score::new(
                    ScoreKind::ScaledDot,
                    &name,
                    d_key,
                    ScoreOptions::default(),
                    init,
                )?,
                align: Align::Global,
                context: Context::Soft,
                gate: None,
            },
            drop: DropoutSite::new(dropout, &name),
        })
    }

    /// The projection of all channels to the model's width.
    pub(super) fn out(&mut self) -> Result<Linear> {
        let name = format!("{}.out", self.side);
        self.init.linear(&name, self.width, self.config.d_model)
    }
}
