//! The sub-layers of a Transformer (Vaswani et al. 2017, §3), and stacks of them.
//!
//! One by one they are made of this crate's operations. A whole [`stack`] is one operation on CPU:
//! candle then records a single node, and what lies between its sub-layers is ours to use again.

mod stack;

use candle_core::{Result, Tensor, bail};

use crate::attention::{Mask, attention, self_attention};
use crate::linear::{Activation, Linear, linear, linear_activated};
use crate::norm::{Norm, add, add_norm, norm};
use crate::pass::{Pass, Path};
use crate::random::{Dropout, Site};
use crate::segments::Segments;

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
}

/// Where layer normalisation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// LN(x + sublayer(x)), as in the paper.
    Post,
    /// x + sublayer(LN(x)).
    Pre,
}

/// What surrounds every sub-layer: residual connection, dropout and normalisation (§3.1, §5.4).
#[derive(Clone, Debug)]
pub struct Residual {
    pub norm: Norm,
    pub order: Order,
    pub drop: DropoutSite,
}

impl Residual {
    pub fn around(
        &self,
        x: &Tensor,
        pass: &Pass,
        body: impl FnOnce(&Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let dropout = self.drop.of(pass);
        match self.order {
            Order::Post => add_norm(x, &body(x)?, dropout, &self.norm, pass),
            Order::Pre => add(x, &body(&norm(x, &self.norm, pass)?)?, dropout, pass),
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

    /// Keys and values of what is attended to: `[n, d]` to `[n, 2d]`.
    pub fn read(&self, x: &Tensor, pass: &Pass) -> Result<Tensor> {
        linear(x, &[&self.key, &self.value], pass)
    }

    /// Each sentence of x attends to the keys and values that [`MultiHead::read`] made.
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
    pub fn forward(&self, x: &Tensor, pass: &Pass) -> Result<Tensor> {
        let dropout = self.drop.of(pass);
        let inner = linear_activated(x, &self.inner, self.activation, dropout, pass)?; // (n, f)
        linear(&inner, &[&self.outer], pass)
    }
}

/// One sub-layer with what surrounds it.
#[derive(Clone, Debug)]
pub struct Sublayer {
    pub residual: Residual,
    pub body: Body,
}

#[derive(Clone, Debug)]
pub enum Body {
    /// Sentences attend to themselves.
    Itself(MultiHead, Mask),
    /// Sentences attend to those of the memory.
    Memory(MultiHead),
    FeedForward(FeedForward),
}

/// What [`Body::Memory`] attends to: states `[m, d]` and the sentences in them.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    pub states: &'a Tensor,
    pub segments: &'a Segments,
}

impl Sublayer {
    /// It is an error if the body attends to a memory and none is given.
    pub fn forward(
        &self,
        x: &Tensor,
        sentences: &Segments,
        memory: Option<Source>,
        pass: &Pass,
    ) -> Result<Tensor> {
        self.residual.around(x, pass, |x| match &self.body {
            Body::Itself(attention, mask) => attention.to_itself(x, sentences, *mask, pass),
            Body::Memory(attention) => {
                let Some(Source { states, segments }) = memory else {
                    bail!("a sub-layer that attends to a memory needs one")
                };
                let kv = attention.read(states, pass)?;
                attention.attend(x, sentences, &kv, segments, pass)
            }
            Body::FeedForward(network) => network.forward(x, pass),
        })
    }
}

/// Sub-layers one after the other: `[n, d]` to `[n, d]`.
pub fn stack<'a>(
    x: &Tensor,
    sentences: &Segments,
    memory: Option<Source>,
    sublayers: impl IntoIterator<Item = &'a Sublayer>,
    pass: &Pass,
) -> Result<Tensor> {
    match pass.path {
        Path::Composed => sublayers.into_iter().try_fold(x.clone(), |x, sublayer| {
            sublayer.forward(&x, sentences, memory, pass)
        }),
        Path::Fused => stack::fused(x, sentences, memory, sublayers, pass),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, param};
    use crate::{Param, Path};

    /// Weights of a size that keeps values near one, so that rounding is not made larger.
    fn linear(name: &str, o: usize, i: usize) -> Linear {
        let small = |name: String, shape: &[usize]| {
            let value = param(&name, shape).value().affine(0.3, 0.0).unwrap();
            Param::new(name, &value.detach()).unwrap()
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
            // Without bias: its gradient is zero but for rounding.
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

    fn sublayers(d: usize, order: Order, activation: Activation) -> Vec<Sublayer> {
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
                norm: Norm {
                    weight: param(&format!("{name}.norm.weight"), d),
                    bias: param(&format!("{name}.norm.bias"), d),
                },
                order,
                drop: DropoutSite::new(0.1, name),
            },
            body,
        };
        bodies.into_iter().map(around).collect()
    }

    fn params(sublayers: &[Sublayer]) -> Vec<Param> {
        let mut params = Vec::new();
        for Sublayer { residual, body } in sublayers {
            params.extend([residual.norm.weight.clone(), residual.norm.bias.clone()]);
            let layers = match body {
                Body::Itself(a, _) | Body::Memory(a) => vec![&a.query, &a.key, &a.value, &a.out],
                Body::FeedForward(network) => vec![&network.inner, &network.outer],
            };
            for layer in layers {
                params.extend(
                    [Some(layer.weight.clone()), layer.bias.clone()]
                        .into_iter()
                        .flatten(),
                );
            }
        }
        params
    }

    #[test]
    fn a_stack_is_its_sub_layers_one_after_the_other_on_both_paths() {
        let (queries, keys) = (Segments::packed([4, 1, 9]), Segments::packed([2, 7, 3]));
        let d = 6;
        for order in [Order::Post, Order::Pre] {
            for activation in [Activation::Relu, Activation::Gelu, Activation::Swish] {
                let layers = sublayers(d, order, activation);
                let case = Case::new(&params(&layers))
                    .input((queries.rows(), d))
                    .input((keys.rows(), d));
                case.check_once(|x, pass| {
                    let memory = Source {
                        states: &x[1],
                        segments: &keys,
                    };
                    match pass.path {
                        Path::Fused => stack(&x[0], &queries, Some(memory), &layers, pass),
                        // Not by `stack`, so that it is compared with something else.
                        Path::Composed => layers.iter().try_fold(x[0].clone(), |x, layer| {
                            layer.forward(&x, &queries, Some(memory), pass)
                        }),
                    }
                });
            }
        }
    }
}
