use attend_ops::{Mask, Pass, Segments, Sublayer, stack};
use candle_core::{Result, Tensor};

use super::config::TransformerConfig;
use super::sublayer::{Builder, Last};
use crate::params::Init;

/// Figure 1, left: N layers of self-attention and feed-forward network.
pub(crate) struct Encoder {
    layers: Vec<[Sublayer; 2]>,
    last: Last,
}

impl Encoder {
    pub(crate) fn new(config: &TransformerConfig, init: &mut Init) -> Result<Self> {
        let layer = |n| {
            let layer = format!("model.encoder.layers.{n}");
            let mut builder = Builder {
                layer,
                config,
                init,
            };
            Ok([builder.itself(Mask::Full)?, builder.feed_forward()?])
        };
        Ok(Self {
            layers: (0..config.encoder_layers)
                .map(layer)
                .collect::<Result<_>>()?,
            last: Last::new("model.encoder.layer_norm", config, init)?,
        })
    }

    /// `[n, d]` to `[n, d]`.
    pub(crate) fn forward(&self, x: &Tensor, sentences: &Segments, pass: &Pass) -> Result<Tensor> {
        let x = stack(x, sentences, None, self.layers.iter().flatten(), pass)?;
        self.last.forward(x, pass)
    }
}
