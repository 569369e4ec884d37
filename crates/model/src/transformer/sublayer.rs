//! The parts that encoder and decoder layers are made of.

use attend_ops::{self as ops, Dropout, Linear, Mask, Pass, Segments, Site};
use candle_core::{Result, Tensor};

use super::config::{Norm, TransformerConfig};
use crate::params::Init;

/// Dropout at one named site.
pub(crate) struct Drop {
    rate: f32,
    site: Site,
}

impl Drop {
    pub(crate) fn new(rate: f32, name: &str) -> Self {
        let site = Site::named(name);
        Self { rate, site }
    }

    pub(crate) fn of(&self, pass: &Pass) -> Dropout {
        pass.dropout(self.rate, self.site)
    }
}

/// What surrounds every sub-layer: residual connection, dropout and normalisation (§3.1, §5.4).
pub(crate) struct Residual {
    norm: ops::Norm,
    order: Norm,
    drop: Drop,
}

impl Residual {
    pub(crate) fn new(name: &str, config: &TransformerConfig, init: &mut Init) -> Result<Self> {
        Ok(Self {
            norm: init.norm(name, config.d_model)?,
            order: config.norm,
            drop: Drop::new(config.dropout, name),
        })
    }

    pub(crate) fn around(
        &self,
        x: &Tensor,
        pass: &Pass,
        sublayer: impl FnOnce(&Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let dropout = self.drop.of(pass);
        match self.order {
            Norm::Post => ops::add_norm(x, &sublayer(x)?, dropout, &self.norm, pass),
            Norm::Pre => {
                let z = sublayer(&ops::norm(x, &self.norm, pass)?)?;
                ops::add(x, &z, dropout, pass)
            }
        }
    }
}

/// Multi-head attention (§3.2.2).
pub(crate) struct MultiHead {
    query: Linear,
    key: Linear,
    value: Linear,
    out: Linear,
    heads: usize,
    drop: Drop,
}

impl MultiHead {
    pub(crate) fn new(name: &str, config: &TransformerConfig, init: &mut Init) -> Result<Self> {
        let d = config.d_model;
        Ok(Self {
            query: init.linear(&format!("{name}.q_proj"), d, d)?,
            key: init.linear(&format!("{name}.k_proj"), d, d)?,
            value: init.linear(&format!("{name}.v_proj"), d, d)?,
            out: init.linear(&format!("{name}.out_proj"), d, d)?,
            heads: config.heads,
            drop: Drop::new(config.attention_dropout, name),
        })
    }

    /// Each sentence attends to itself.
    pub(crate) fn to_itself(
        &self,
        x: &Tensor,
        sentences: &Segments,
        mask: Mask,
        pass: &Pass,
    ) -> Result<Tensor> {
        let qkv = ops::linear(x, &[&self.query, &self.key, &self.value], pass)?; // (n, 3d)
        let dropout = self.drop.of(pass);
        let context = ops::self_attention(&qkv, sentences, self.heads, mask, dropout, pass)?;
        ops::linear(&context, &[&self.out], pass)
    }

    /// Keys and values of what is attended to: `[n, d]` to `[n, 2d]`.
    pub(crate) fn read(&self, x: &Tensor, pass: &Pass) -> Result<Tensor> {
        ops::linear(x, &[&self.key, &self.value], pass)
    }

    /// Each sentence of x attends to the keys and values that [`MultiHead::read`] made.
    pub(crate) fn attend(
        &self,
        x: &Tensor,
        queries: &Segments,
        kv: &Tensor,
        keys: &Segments,
        pass: &Pass,
    ) -> Result<Tensor> {
        let q = ops::linear(x, &[&self.query], pass)?; // (n, d)
        let dropout = self.drop.of(pass);
        let context = ops::attention(&q, queries, kv, keys, self.heads, dropout, pass)?;
        ops::linear(&context, &[&self.out], pass)
    }
}

/// The position-wise feed-forward network (§3.3): f(x W₁ + b₁) W₂ + b₂.
pub(crate) struct FeedForward {
    inner: Linear,
    outer: Linear,
    activation: ops::Activation,
    drop: Drop,
}

impl FeedForward {
    pub(crate) fn new(name: &str, config: &TransformerConfig, init: &mut Init) -> Result<Self> {
        let (d, d_ff) = (config.d_model, config.d_ff);
        Ok(Self {
            inner: init.linear(&format!("{name}.fc1"), d, d_ff)?,
            outer: init.linear(&format!("{name}.fc2"), d_ff, d)?,
            activation: config.activation.into(),
            drop: Drop::new(config.activation_dropout, &format!("{name}.fc1")),
        })
    }

    pub(crate) fn forward(&self, x: &Tensor, pass: &Pass) -> Result<Tensor> {
        let dropout = self.drop.of(pass);
        let inner = ops::linear_activated(x, &self.inner, self.activation, dropout, pass)?; // (n, f)
        ops::linear(&inner, &[&self.outer], pass)
    }
}

/// The last normalisation of a pre-norm stack; nothing in a post-norm one.
pub(crate) struct Last(Option<ops::Norm>);

impl Last {
    pub(crate) fn new(name: &str, config: &TransformerConfig, init: &mut Init) -> Result<Self> {
        Ok(Self(match config.norm {
            Norm::Pre => Some(init.norm(name, config.d_model)?),
            Norm::Post => None,
        }))
    }

    pub(crate) fn forward(&self, x: Tensor, pass: &Pass) -> Result<Tensor> {
        match &self.0 {
            Some(norm) => ops::norm(&x, norm, pass),
            None => Ok(x),
        }
    }
}
