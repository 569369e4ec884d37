//! Creates the blocks of the encoder and decoder, and their named parameters.

use attend_ops::{
    self as ops, Body, DropoutSite, FeedForward, Mask, MultiHead, NormPlacement, Pass, Residual,
    Sublayer,
};
use candle_core::{Result, Tensor};

use super::block::Block;
use super::config::{NormKind, TransformerConfig};
use crate::attention::{Score, ScoreOptions};
use crate::weights::Init;

/// Creates the blocks of one layer.
pub(crate) struct Builder<'a, 'b> {
    /// The name of the layer, which is the prefix of its parameters' names.
    pub(crate) layer: String,
    pub(crate) config: &'a TransformerConfig,
    pub(crate) init: &'a mut Init<'b>,
}

impl Builder<'_, '_> {
    /// Self-attention.
    pub(crate) fn itself(&mut self, mask: Mask) -> Result<Block> {
        let (heads, scores) = self.multi_head("self_attn")?;
        self.block("self_attn_layer_norm", Body::Itself(heads, mask), scores)
    }

    /// Attention to the encoder's output.
    pub(crate) fn memory(&mut self) -> Result<Block> {
        let (heads, scores) = self.multi_head("encoder_attn")?;
        self.block("encoder_attn_layer_norm", Body::Memory(heads), scores)
    }

    pub(crate) fn feed_forward(&mut self) -> Result<Block> {
        let (d, d_ff) = (self.config.d_model, self.config.d_ff);
        let inner = format!("{}.fc1", self.layer);
        let network = FeedForward {
            inner: self.init.linear(&inner, d, d_ff)?,
            outer: self.init.linear(&format!("{}.fc2", self.layer), d_ff, d)?,
            activation: self.config.activation.into(),
            drop: DropoutSite::new(self.config.activation_dropout, &inner),
        };
        self.block("final_layer_norm", Body::FeedForward(network), Vec::new())
    }

    fn block(&mut self, norm: &str, body: Body, scores: Vec<Score>) -> Result<Block> {
        let name = format!("{}.{norm}", self.layer);
        let residual = Residual {
            norm: self.init.norm(&name, self.config.d_model)?,
            placement: match self.config.norm {
                NormKind::Post => NormPlacement::Post,
                NormKind::Pre => NormPlacement::Pre,
            },
            drop: DropoutSite::new(self.config.dropout, &name),
        };
        let sublayer = Sublayer { residual, body };
        Ok(Block { sublayer, scores })
    }

    fn multi_head(&mut self, name: &str) -> Result<(MultiHead, Vec<Score>)> {
        let (name, d) = (format!("{}.{name}", self.layer), self.config.d_model);
        let heads = self.config.heads;
        let scores = (0..heads).map(|head| {
            let (kind, name) = (self.config.score.of(head), format!("{name}.scores.{head}"));
            Score::new(kind, &name, d / heads, ScoreOptions::default(), self.init)
        });
        let scores = scores.collect::<Result<_>>()?;
        let mut linear = |part: &str| self.init.linear(&format!("{name}.{part}_proj"), d, d);
        let heads = MultiHead {
            query: linear("q")?,
            key: linear("k")?,
            value: linear("v")?,
            out: linear("out")?,
            heads,
            drop: DropoutSite::new(self.config.attention_dropout, &name),
        };
        Ok((heads, scores))
    }
}

/// The final layer normalisation of a pre-norm stack; the identity in a post-norm one.
pub(crate) struct Last(Option<ops::LayerNorm>);

impl Last {
    pub(crate) fn new(name: &str, config: &TransformerConfig, init: &mut Init) -> Result<Self> {
        Ok(Self(match config.norm {
            NormKind::Pre => Some(init.norm(name, config.d_model)?),
            NormKind::Post => None,
        }))
    }

    pub(crate) fn forward(&self, x: Tensor, pass: &Pass) -> Result<Tensor> {
        match &self.0 {
            Some(norm) => ops::norm(&x, norm, pass),
            None => Ok(x),
        }
    }
}
