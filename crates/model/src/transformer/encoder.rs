use attend_ops::{Mask, Pass, Segments};
use candle_core::{Result, Tensor};

use super::config::TransformerConfig;
use super::sublayer::{FeedForward, Last, MultiHead, Residual};
use crate::params::Init;

/// Figure 1, left: N layers of self-attention and feed-forward network.
pub(crate) struct Encoder {
    layers: Vec<Layer>,
    last: Last,
}

struct Layer {
    attention: MultiHead,
    after_attention: Residual,
    feed_forward: FeedForward,
    after_feed_forward: Residual,
}

impl Encoder {
    pub(crate) fn new(config: &TransformerConfig, init: &mut Init) -> Result<Self> {
        let layer = |n| Layer::new(&format!("model.encoder.layers.{n}"), config, init);
        Ok(Self {
            layers: (0..config.encoder_layers)
                .map(layer)
                .collect::<Result<_>>()?,
            last: Last::new("model.encoder.layer_norm", config, init)?,
        })
    }

    /// `[n, d]` to `[n, d]`.
    pub(crate) fn forward(&self, x: &Tensor, sentences: &Segments, pass: &Pass) -> Result<Tensor> {
        let mut x = x.clone();
        for layer in &self.layers {
            x = layer.forward(&x, sentences, pass)?;
        }
        self.last.forward(x, pass)
    }
}

impl Layer {
    fn new(name: &str, config: &TransformerConfig, init: &mut Init) -> Result<Self> {
        let part = |part: &str| format!("{name}.{part}");
        Ok(Self {
            attention: MultiHead::new(&part("self_attn"), config, init)?,
            after_attention: Residual::new(&part("self_attn_layer_norm"), config, init)?,
            feed_forward: FeedForward::new(name, config, init)?,
            after_feed_forward: Residual::new(&part("final_layer_norm"), config, init)?,
        })
    }

    fn forward(&self, x: &Tensor, sentences: &Segments, pass: &Pass) -> Result<Tensor> {
        let x = self.after_attention.around(x, pass, |x| {
            self.attention.to_itself(x, sentences, Mask::Full, pass)
        })?;
        self.after_feed_forward
            .around(&x, pass, |x| self.feed_forward.forward(x, pass))
    }
}
