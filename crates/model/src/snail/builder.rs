//! The parameters of the layers that encoder and decoder are made of, by their names.

use attend_ops::{DropoutSite, Linear};
use candle_core::Result;

use super::config::SnailConfig;
use super::convolution::Convolution;
use super::reader::Reader;
use crate::ScoreKind;
use crate::attention::{Align, Attention, Context, Score};
use crate::params::Init;

/// Makes the layers of a side in their order, each of which adds to the channels that the next one reads.
pub(super) struct Builder<'a, 'b> {
    config: &'a SnailConfig,
    init: &'a mut Init<'b>,
    /// `model.encoder` or `model.decoder`.
    side: &'static str,
    /// Channels so far.
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

    /// Convolutions that together see the whole span (Algorithm 2).
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

    /// Attention to the features themselves.
    pub(super) fn itself(&mut self, block: usize) -> Result<Reader> {
        self.reader(block, "attention", self.width)
    }

    /// Attention to the encoder's output.
    pub(super) fn memory(&mut self, block: usize) -> Result<Reader> {
        self.reader(block, "memory", self.config.d_model)
    }

    fn reader(&mut self, block: usize, name: &str, read: usize) -> Result<Reader> {
        let name = format!("{}.blocks.{block}.{name}", self.side);
        let SnailConfig {
            d_key,
            d_value,
            dropout,
            ..
        } = *self.config;
        let (init, width) = (&mut *self.init, self.width);
        self.width += d_value;
        Ok(Reader {
            query: init.linear(&format!("{name}.query"), width, d_key)?,
            key: init.matrix(&format!("{name}.key"), read, d_key)?,
            value: init.linear(&format!("{name}.value"), read, d_value)?,
            attention: Attention {
                score: Score::new(ScoreKind::ScaledDot, &name, d_key, 0, init)?,
                align: Align::Global,
                context: Context::Soft,
                gate: None,
            },
            drop: DropoutSite::new(dropout, &name),
        })
    }

    /// All channels to the model's width.
    pub(super) fn out(&mut self) -> Result<Linear> {
        let name = format!("{}.out", self.side);
        self.init.linear(&name, self.width, self.config.d_model)
    }
}
