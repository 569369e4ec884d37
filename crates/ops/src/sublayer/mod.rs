//! The sub-layers of a Transformer (Vaswani et al. 2017, §3), and stacks of them.
//!
//! A sub-layer consists of operations of this crate. On CPU a whole [`stack()`] is a single operation: candle
//! records one node, and the memory between its sub-layers is reused.

mod stack;

use attend_batch::Segments;
use candle_core::{Result, Tensor, bail};

use crate::attention::{Mask, attention, self_attention};
use crate::embed::EmbeddingDropout;
use crate::linear::{Activation, Linear, linear, linear_activated};
use crate::norm::{LayerNorm, add, add_norm, norm};
use crate::pass::{Cut, Kernels, Pass};
use crate::random::{Dropout, RowDropout, Site};
use crate::weight::Weight;

/// Dropout at one named site.
#[derive(Clone, Copy, Debug)]
pub struct DropoutSite {
    rate: f32,
    site: Site,
}

impl DropoutSite {
    pub fn new(rate: f32, name: &str) -> Self {
        let site = Site::named(name);
        Self { rate, site }
    }

    pub fn of(&self, pass: &Pass) -> Dropout {
        pass.dropout(self.rate, self.site)
    }

    /// That of the rows of these sentences.
    pub fn of_rows(&self, sentences: &Segments, pass: &Pass) -> RowDropout {
        of_rows(self.of(pass), sentences)
    }

    /// That of the embeddings of these sentences, with what else the pass leaves out of embeddings.
    pub fn of_embeddings(&self, sentences: &Segments, pass: &Pass) -> EmbeddingDropout {
        let part = |rate: f32, name: &str| {
            let dropout = pass.dropout(rate, self.site.part(name)).unscaled();
            of_rows(dropout, sentences)
        };
        let (tokens, elements) = match pass.words.cut {
            None => (0.0, 0.0),
            Some(Cut::Tokens(rate)) => (rate, 0.0),
            Some(Cut::Elements(rate)) => (0.0, rate),
        };
        EmbeddingDropout {
            elements: self.of_rows(sentences, pass),
            tokens: [part(pass.words.dropped, "words"), part(tokens, "cut")],
            cut: part(elements, "cut"),
        }
    }
}

fn of_rows(dropout: Dropout, sentences: &Segments) -> RowDropout {
    match dropout.is_none() {
        true => RowDropout::NONE,
        false => dropout.of_rows(sentences.numbers()),
    }
}

/// The position of layer normalisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormPlacement {
    /// LN(x + sublayer(x)), as in the paper.
    Post,
    /// x + sublayer(LN(x)).
    Pre,
}

/// The wrapping of every sub-layer: residual connection, dropout and normalisation (§3.1, §5.4).
#[derive(Clone, Debug)]
pub struct Residual {
    pub norm: LayerNorm,
    pub placement: NormPlacement,
    pub drop: DropoutSite,
}

impl Residual {
    pub fn around(
        &self,
        x: &Tensor,
        sentences: &Segments,
        pass: &Pass,
        body: impl FnOnce(&Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let dropout = &self.drop.of_rows(sentences, pass);
        match self.placement {
            NormPlacement::Post => add_norm(x, &body(x)?, dropout, &self.norm, pass),
            NormPlacement::Pre => add(x, &body(&norm(x, &self.norm, pass)?)?, dropout, pass),
        }
    }
}

/// Multi-head attention (§3.2.2).
#[derive(Clone, Debug)]
pub struct MultiHead {
    pub query: Linear,
    pub key: Linear,
    pub value: Linear,
    pub out: Linear,
    pub heads: usize,
    pub drop: DropoutSite,
}

impl MultiHead {
    /// Each sentence attends to itself.
    pub fn to_itself(
        &self,
        x: &Tensor,
        sentences: &Segments,
        mask: Mask,
        pass: &Pass,
    ) -> Result<Tensor> {
        let qkv = linear(x, &[&self.query, &self.key, &self.value], pass)?; // (n, 3d)
        let dropout = self.drop.of(pass);
        let context = self_attention(&qkv, sentences, self.heads, mask, dropout, pass)?;
        linear(&context, &[&self.out], pass)
    }

    /// Keys and values of the attended states: `[n, d]` to `[n, 2d]`.
    pub fn keys_values(&self, x: &Tensor, pass: &Pass) -> Result<Tensor> {
        linear(x, &[&self.key, &self.value], pass)
    }

    /// Each sentence of x attends to the keys and values from [`MultiHead::keys_values`].
    pub fn attend(
        &self,
        x: &Tensor,
        queries: &Segments,
        kv: &Tensor,
        keys: &Segments,
        pass: &Pass,
    ) -> Result<Tensor> {
        let q = linear(x, &[&self.query], pass)?; // (n, d)
        let dropout = self.drop.of(pass);
        let context = attention(&q, queries, kv, keys, self.heads, dropout, pass)?;
        linear(&context, &[&self.out], pass)
    }
}

/// The position-wise feed-forward network (§3.3): f(x W₁ + b₁) W₂ + b₂.
#[derive(Clone, Debug)]
pub struct FeedForward {
    pub inner: Linear,
    pub outer: Linear,
    pub activation: Activation,
    pub drop: DropoutSite,
}

impl FeedForward {
    pub fn forward(&self, x: &Tensor, sentences: &Segments, pass: &Pass) -> Result<Tensor> {
        let dropout = self.drop.of_rows(sentences, pass);
        let inner = linear_activated(x, &self.inner, self.activation, &dropout, pass)?; // (n, f)
        linear(&inner, &[&self.outer], pass)
    }
}

/// A sub-layer with its residual connection and normalisation.
#[derive(Clone, Debug)]
pub struct Sublayer {
    pub residual: Residual,
    pub body: Body,
}

#[derive(Clone, Debug)]
pub enum Body {
    /// Each sentence attends to itself.
    Itself(MultiHead, Mask),
    /// Each sentence attends to its sentence of the memory.
    Memory(MultiHead),
    FeedForward(FeedForward),
}

/// The memory that [`Body::Memory`] attends to: states `[m, d]` and their sentences.
#[derive(Clone, Copy)]
pub struct AttendedStates<'a> {
    pub states: &'a Tensor,
    pub segments: &'a Segments,
}

impl Sublayer {
    fn weights(&self) -> Vec<&Weight> {
        let layers = match &self.body {
            Body::Itself(heads, _) | Body::Memory(heads) => {
                vec![&heads.query, &heads.key, &heads.value, &heads.out]
            }
            Body::FeedForward(network) => vec![&network.inner, &network.outer],
        };
        let mut weights = vec![&self.residual.norm.weight, &self.residual.norm.bias];
        for Linear { weight, bias } in layers {
            weights.push(weight);
            weights.extend(bias);
        }
        weights
    }

    /// # Errors
    /// If the body attends to a memory and none is given.
    pub fn forward(
        &self,
        x: &Tensor,
        sentences: &Segments,
        memory: Option<AttendedStates>,
        pass: &Pass,
    ) -> Result<Tensor> {
        self.residual
            .around(x, sentences, pass, |x| match &self.body {
                Body::Itself(attention, mask) => attention.to_itself(x, sentences, *mask, pass),
                Body::Memory(attention) => {
                    let Some(AttendedStates { states, segments }) = memory else {
                        bail!("a sub-layer attends to a memory, but none is given")
                    };
                    let kv = attention.keys_values(states, pass)?;
                    attention.attend(x, sentences, &kv, segments, pass)
                }
                Body::FeedForward(network) => network.forward(x, sentences, pass),
            })
    }
}

/// Sub-layers one after the other: `[n, d]` to `[n, d]`.
pub fn stack<'a>(
    x: &Tensor,
    sentences: &Segments,
    memory: Option<AttendedStates>,
    sublayers: impl IntoIterator<Item = &'a Sublayer>,
    pass: &Pass,
) -> Result<Tensor> {
    match pass.kernels {
        Kernels::Composed => sublayers.into_iter().try_fold(x.clone(), |x, sublayer| {
            sublayer.forward(&x, sentences, memory, pass)
        }),
        Kernels::Fused => stack::fused(x, sentences, memory, sublayers, pass),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, weight};
    use crate::{Kernels, Param, Weight};

    /// Weights of a scale that keeps values near one, so that rounding errors do not grow.
    fn linear(name: &str, o: usize, i: usize) -> Linear {
        let small = |name: String, shape: &[usize]| {
            let value = weight(&name, shape).value().affine(0.3, 0.0).unwrap();
            Weight::from(Param::new(name, &value.detach()).unwrap())
        };
        Linear {
            weight: small(format!("{name}.weight"), &[o, i]),
            bias: Some(small(format!("{name}.bias"), &[o])),
        }
    }

    fn multi_head(name: &str, d: usize) -> MultiHead {
        let part = |part: &str| linear(&format!("{name}.{part}"), d, d);
        MultiHead {
            query: part("q"),
            // Without bias: its gradient is zero except for rounding.
            key: Linear {
                bias: None,
                ..part("k")
            },
            value: part("v"),
            out: part("out"),
            heads: 2,
            drop: DropoutSite::new(0.2, name),
        }
    }

    fn sublayers(d: usize, placement: NormPlacement, activation: Activation) -> Vec<Sublayer> {
        let feed_forward = FeedForward {
            inner: linear("inner", 2 * d + 1, d),
            outer: linear("outer", d, 2 * d + 1),
            activation,
            drop: DropoutSite::new(0.1, "inner"),
        };
        let bodies = [
            (
                "itself",
                Body::Itself(multi_head("itself", d), Mask::Causal),
            ),
            ("memory", Body::Memory(multi_head("memory", d))),
            ("feed-forward", Body::FeedForward(feed_forward)),
            ("again", Body::Memory(multi_head("again", d))),
        ];
        let around = |(name, body): (&str, Body)| Sublayer {
            residual: Residual {
                norm: LayerNorm {
                    weight: weight(&format!("{name}.norm.weight"), d),
                    bias: weight(&format!("{name}.norm.bias"), d),
                },
                placement,
                drop: DropoutSite::new(0.1, name),
            },
            body,
        };
        bodies.into_iter().map(around).collect()
    }

    fn weights(sublayers: &[Sublayer]) -> Vec<Weight> {
        let weights = sublayers.iter().flat_map(Sublayer::weights);
        weights.cloned().collect()
    }

    #[test]
    fn a_stack_equals_its_sub_layers_in_sequence_with_both_kernels() {
        let (queries, keys) = (Segments::packed([4, 1, 9]), Segments::packed([2, 7, 3]));
        let d = 6;
        for placement in [NormPlacement::Post, NormPlacement::Pre] {
            for activation in [Activation::Relu, Activation::Gelu, Activation::Swish] {
                let layers = sublayers(d, placement, activation);
                let case = Case::new(&weights(&layers))
                    .input((queries.rows(), d))
                    .input((keys.rows(), d));
                case.check_once(|x, pass| {
                    let memory = AttendedStates {
                        states: &x[1],
                        segments: &keys,
                    };
                    match pass.kernels {
                        Kernels::Fused => stack(&x[0], &queries, Some(memory), &layers, pass),
                        // Without `stack`, which is under test.
                        Kernels::Composed => layers.iter().try_fold(x[0].clone(), |x, layer| {
                            layer.forward(&x, &queries, Some(memory), pass)
                        }),
                    }
                });
            }
        }
    }
}
