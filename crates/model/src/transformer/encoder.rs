use attend_batch::Segments;
use attend_ops::{Mask, Pass};
use candle_core::{Result, Tensor};

use super::block::{Block, Scene, run};
use super::builder::{Builder, Last};
use super::config::TransformerConfig;
use super::layer_dropout::LayerDropout;
use crate::AttentionMap;
use crate::weights::Init;

/// Figure 1, left: N layers of self-attention and a feed-forward network.
pub(crate) struct Encoder {
    layers: Vec<[Block; 2]>,
    dropout: LayerDropout,
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
        let layers: Vec<_> = (0..config.encoder_layers)
            .map(layer)
            .collect::<Result<_>>()?;
        let (rate, stack) = (config.layer_dropout, "model.encoder.layers");
        Ok(Self {
            dropout: LayerDropout::new(rate, stack, layers.len(), init),
            layers,
            last: Last::new("model.encoder.layer_norm", config, init)?,
        })
    }

    /// `[n, d]` to `[n, d]`. Appends the attention maps to `maps`, if given.
    pub(crate) fn forward(
        &self,
        x: &Tensor,
        sentences: &Segments,
        maps: Option<&mut Vec<AttentionMap>>,
        pass: &Pass,
    ) -> Result<Tensor> {
        let scene = Scene {
            sentences,
            memory: None,
        };
        let kept = self.dropout.kept(pass)?;
        let x = run(
            x,
            kept.iter().map(|&layer| &self.layers[layer][..]),
            scene,
            maps,
            pass,
        )?;
        self.last.forward(x, pass)
    }
}
