//! One token of every hypothesis through a stack of sub-layers, on CPU.
//!
//! Keys and values of former tokens are read where they lie, by index: a hypothesis is a list of the slots of its
//! tokens. Hypotheses that share their beginning share its slots, so a beam is selected by copying lists of
//! numbers. Hypotheses may be of different lengths, so new sentences can join those that are being translated.
//!
//! The bits of a row depend neither on the other rows nor on the number of threads.

mod attend;
mod cache;
#[cfg(test)]
mod tests;

use candle_core::{Result, Tensor, bail};

pub use cache::StepCache;

use crate::buffer::Buffer;
use crate::cpu::view;
use crate::linear::{self, Linear};
use crate::norm::{self, Branch, add_rows};
use crate::random::RowDropout;
use crate::sublayer::{Body, FeedForward, MultiHead, NormPlacement, Sublayer};
use crate::threads::stay_awake;
use attend::attend;

/// The weights of one attention to the source: `[heads, rows, keys]`. A row whose source is shorter than the
/// longest has zeros at its end.
pub struct SourceWeights {
    pub values: Vec<f32>,
    pub heads: usize,
    pub keys: usize,
}

/// The next token of every row, `[rows, d]` to `[rows, d]`. The cache must have been made for the same sub-layers.
/// With `weights`, adds those of each attention to the source.
pub fn step<'a>(
    x: &Tensor,
    sublayers: impl IntoIterator<Item = &'a Sublayer>,
    cache: &mut StepCache,
    mut weights: Option<&mut Vec<SourceWeights>>,
) -> Result<Tensor> {
    let (rows, d) = x.dims2()?;
    if rows != cache.rows() {
        bail!("a step of {rows} rows with a cache of {}", cache.rows());
    }
    cache.append();
    let mut place = Place::default();
    let mut x = Buffer::copy_of(&view(x)?);
    for Sublayer { residual, body } in sublayers {
        stay_awake();
        let mut body = |x: &[f32]| match body {
            Body::Itself(heads, _) => {
                let layer = place.next_own();
                let qkv = affine(x, &[&heads.query, &heads.key, &heads.value])?;
                cache.store(layer, &qkv);
                let keys = |row: usize| cache.own_keys(layer, row);
                let queries = qkv.chunks_exact(3 * d).map(|qkv| &qkv[..d]).collect();
                let context = attend(queries, keys, heads.heads, None);
                affine(&context, &[&heads.out])
            }
            Body::Memory(heads) => {
                let layer = place.next_source();
                let q = affine(x, &[&heads.query])?;
                let keys = |row: usize| cache.source_keys(layer, row);
                let queries = q.chunks_exact(d).collect();
                let mut kept = weights.is_some().then(|| cache.no_weights(heads.heads));
                let context = attend(queries, keys, heads.heads, kept.as_mut());
                if let (Some(all), Some(kept)) = (&mut weights, kept) {
                    all.push(kept);
                }
                affine(&context, &[&heads.out])
            }
            Body::FeedForward(network) => feed_forward(x, network),
        };
        x = match residual.placement {
            NormPlacement::Post => {
                let z = body(&x)?;
                let (values, dropout) = (&z[..], &RowDropout::NONE);
                let mut y = Buffer::any(x.len());
                norm::forward(&x, Some(Branch { values, dropout }), &residual.norm, &mut y)?;
                y
            }
            NormPlacement::Pre => {
                let mut normed = Buffer::any(x.len());
                norm::forward(&x, None, &residual.norm, &mut normed)?;
                add_rows(&mut x, &body(&normed)?, d, &RowDropout::NONE);
                x
            }
        };
    }
    Tensor::from_vec(x.to_vec(), (rows, d), &candle_core::Device::Cpu)
}

/// Counts the attentions of each kind.
#[derive(Default)]
struct Place {
    own: usize,
    source: usize,
}

impl Place {
    fn next_own(&mut self) -> usize {
        self.own += 1;
        self.own - 1
    }

    fn next_source(&mut self) -> usize {
        self.source += 1;
        self.source - 1
    }
}

fn affine(x: &[f32], layers: &[&Linear]) -> Result<Buffer> {
    let (_, inputs) = layers[0].weight.dims2()?;
    let mut y = Buffer::any(x.len() / inputs * linear::outputs(layers)?);
    linear::forward(x, layers, None, &RowDropout::NONE, &mut y)?;
    Ok(y)
}

fn feed_forward(x: &[f32], network: &FeedForward) -> Result<Buffer> {
    let FeedForward {
        inner: layer,
        outer,
        activation,
        ..
    } = network;
    let (outputs, inputs) = layer.weight.dims2()?;
    let mut inner = Buffer::any(x.len() / inputs * outputs);
    linear::forward(
        x,
        &[layer],
        Some(*activation),
        &RowDropout::NONE,
        &mut inner,
    )?;
    affine(&inner, &[outer])
}

/// The keys and values of the source for one attention, `[n, 2d]`.
fn source_keys_values(states: &[f32], heads: &MultiHead) -> Result<Buffer> {
    affine(states, &[&heads.key, &heads.value])
}
