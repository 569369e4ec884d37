//! Attention from plain candle operations: the reference implementation.

use attend_batch::Segments;
use candle_core::{D, Device, Result, Tensor};

use super::Plan;
use crate::padding::{pad, unpad};

/// Added to masked scores. They vanish in the softmax, but stay finite: a row that sees no key is
/// multiplied by zero afterwards, which would not help against NaN.
const HIDDEN: f32 = -1e30;

/// b sentences, h heads, t queries, s keys, w head width.
pub(super) fn attention(q: &Tensor, kv: &Tensor, plan: &Plan) -> Result<Tensor> {
    let (b, t, s) = (
        plan.queries.count(),
        plan.queries.longest(),
        plan.keys.longest(),
    );
    if t == 0 || s == 0 {
        return q.zeros_like();
    }
    let (k, v) = (kv.narrow(1, 0, plan.d)?, kv.narrow(1, plan.d, plan.d)?);
    let q = heads(q, &plan.queries, plan)?; // (b, h, t, w)
    let (k, v) = (heads(&k, &plan.keys, plan)?, heads(&v, &plan.keys, plan)?); // (b, h, s, w)
    let seen = visibility(plan, q.device())?; // (b, 1, t, s), ones and zeros
    let hidden = ((&seen - 1.0)? * f64::from(-HIDDEN))?;

    let scores = (q.matmul(&k.t()?)? * f64::from(plan.scale()))?; // (b, h, t, s)
    let weights = candle_nn::ops::softmax(&scores.broadcast_add(&hidden)?, D::Minus1)?;
    let weights = weights.broadcast_mul(&seen)?;
    let weights = match dropout_mask(plan, q.device())? {
        Some(mask) => (weights * mask)?,
        None => weights,
    };
    let context = weights.matmul(&v)?; // (b, h, t, w)
    let rows = context
        .transpose(1, 2)?
        .contiguous()?
        .reshape((b, t, plan.d))?;
    unpad(&rows, &plan.queries)
}

/// Packed `[n, d]` to `(b, h, longest, w)`.
fn heads(x: &Tensor, segments: &Segments, plan: &Plan) -> Result<Tensor> {
    pad(x, segments)?
        .reshape((
            segments.count(),
            segments.longest(),
            plan.heads,
            plan.head_width(),
        ))?
        .transpose(1, 2)?
        .contiguous()
}

fn visibility(plan: &Plan, device: &Device) -> Result<Tensor> {
    let (b, t, s) = (
        plan.queries.count(),
        plan.queries.longest(),
        plan.keys.longest(),
    );
    let mut seen = vec![0.0f32; b * t * s];
    for (row, seen) in seen.chunks_exact_mut(s).enumerate() {
        let keys = plan.keys.lengths()[row / t];
        seen[..plan.mask.visible(row % t, keys)].fill(1.0);
    }
    Tensor::from_vec(seen, (b, 1, t, s), device)
}

fn dropout_mask(plan: &Plan, device: &Device) -> Result<Option<Tensor>> {
    if plan.dropout.is_none() {
        return Ok(None);
    }
    let (b, h) = (plan.queries.count(), plan.heads);
    let (t, s) = (plan.queries.longest(), plan.keys.longest());
    let mut mask = vec![0.0f32; b * h * t * s];
    for (index, mask) in mask.chunks_exact_mut(t * s).enumerate() {
        let dropout = plan.dropout(index / h, index % h);
        for (i, row) in mask.chunks_exact_mut(s).enumerate() {
            let dropout = dropout.row(i);
            for (j, factor) in row.iter_mut().enumerate() {
                *factor = dropout.factor(j as u32);
            }
        }
    }
    Tensor::from_vec(mask, (b, h, t, s), device).map(Some)
}
