//! Attention on CPU: one task per sentence, or per sentence and head if sentences are few. The forward
//! pass keeps two numbers of each softmax; the backward pass recomputes the weights. Stacks of sub-layers
//! use these functions too.

use std::sync::Mutex;

use candle_core::{CpuStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use super::Plan;
use super::gradients::Gradients;
use super::sentence::{Inputs, Share};
use super::softmax::Softmax;
use crate::buffer::Buffer;
use crate::cpu::{self, slice, view};
use crate::pass::Pass;
use crate::profile::{self, Part};

pub(super) fn self_attention(qkv: &Tensor, plan: Plan, pass: &Pass) -> Result<Tensor> {
    if pass.trains() {
        qkv.apply_op1(AttentionOp::new(plan))
    } else {
        qkv.apply_op1_no_bwd(&AttentionOp::new(plan))
    }
}

pub(super) fn attention(q: &Tensor, kv: &Tensor, plan: Plan, pass: &Pass) -> Result<Tensor> {
    if pass.trains() {
        q.apply_op2(kv, AttentionOp::new(plan))
    } else {
        q.apply_op2_no_bwd(kv, &AttentionOp::new(plan))
    }
}

struct AttentionOp {
    plan: Plan,
    /// One per query and head: per sentence `[heads, queries]`.
    softmaxes: Mutex<Option<Vec<Softmax>>>,
}

impl CustomOp1 for AttentionOp {
    fn name(&self) -> &'static str {
        "self-attention"
    }

    fn cpu_fwd(&self, qkv: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        self.forward(Inputs::together(slice(qkv, layout)?))
    }

    fn bwd(&self, qkv: &Tensor, _: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        let dqkv = self.with_softmaxes(|softmaxes| {
            Ok(backward_together(
                &self.plan,
                &view(qkv)?,
                softmaxes,
                &view(dy)?,
            ))
        })?;
        Ok(Some(cpu::like(dqkv.to_vec(), qkv)?))
    }
}

impl CustomOp2 for AttentionOp {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn cpu_fwd(
        &self,
        q: &CpuStorage,
        q_layout: &Layout,
        kv: &CpuStorage,
        kv_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        self.forward(Inputs::apart(slice(q, q_layout)?, slice(kv, kv_layout)?))
    }

    fn bwd(
        &self,
        q: &Tensor,
        kv: &Tensor,
        _: &Tensor,
        dy: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let (dq, dkv) = self.with_softmaxes(|softmaxes| {
            Ok(backward_apart(
                &self.plan,
                &view(q)?,
                &view(kv)?,
                softmaxes,
                &view(dy)?,
            ))
        })?;
        let (dq, dkv) = (cpu::like(dq.to_vec(), q)?, cpu::like(dkv.to_vec(), kv)?);
        Ok((Some(dq), Some(dkv)))
    }
}

impl AttentionOp {
    fn new(plan: Plan) -> Self {
        let softmaxes = Mutex::new(None);
        Self { plan, softmaxes }
    }

    fn forward(&self, inputs: Inputs) -> Result<(CpuStorage, Shape)> {
        let (n, d) = (self.plan.queries.rows(), self.plan.d);
        let mut y = vec![0.0; n * d];
        let softmaxes = forward(&self.plan, inputs, &mut y);
        *self.softmaxes.lock().unwrap_or_else(|e| e.into_inner()) = Some(softmaxes);
        Ok((CpuStorage::F32(y), (n, d).into()))
    }

    fn with_softmaxes<T>(&self, backward: impl FnOnce(&[Softmax]) -> Result<T>) -> Result<T> {
        match &*self.softmaxes.lock().unwrap_or_else(|e| e.into_inner()) {
            Some(softmaxes) => backward(softmaxes),
            None => bail!("attention: the backward pass needs a forward pass in training"),
        }
    }
}

/// Writes the contexts `[n, d]`. Returns what the backward pass needs: per sentence `[heads, queries]`.
pub(crate) fn forward(plan: &Plan, inputs: Inputs, y: &mut [f32]) -> Vec<Softmax> {
    let _time = profile::time(Part::Attention);
    let Plan {
        d, heads, queries, ..
    } = plan;
    let mut softmaxes = vec![Softmax::default(); queries.rows() * heads];
    let parts = queries.split(y, *d).into_iter();
    let parts: Vec<_> = parts.zip(queries.split(&mut softmaxes, *heads)).collect();
    share_out(parts, |index, (y, softmaxes), share| {
        inputs.sentence(plan, index).forward(y, softmaxes, share);
    });
    softmaxes
}

/// The gradient of queries, keys and values, side by side `[n, 3d]`.
pub(crate) fn backward_together(
    plan: &Plan,
    qkv: &[f32],
    softmaxes: &[Softmax],
    dy: &[f32],
) -> Buffer {
    let mut gradient = Buffer::any(qkv.len());
    let parts = plan.queries.split(&mut gradient, 3 * plan.d);
    let parts = parts.into_iter().map(Gradients::Together).collect();
    backward(plan, Inputs::together(qkv), softmaxes, dy, parts);
    gradient
}

/// The gradient of the queries `[n, d]`, and of keys and values `[m, 2d]`.
pub(crate) fn backward_apart(
    plan: &Plan,
    q: &[f32],
    kv: &[f32],
    softmaxes: &[Softmax],
    dy: &[f32],
) -> (Buffer, Buffer) {
    let (mut dq, mut dkv) = (Buffer::any(q.len()), Buffer::any(kv.len()));
    let parts = plan.queries.split(&mut dq, plan.d).into_iter();
    let parts = parts.zip(plan.keys.split(&mut dkv, 2 * plan.d));
    let parts = parts.map(|(q, kv)| Gradients::Apart { q, kv }).collect();
    backward(plan, Inputs::apart(q, kv), softmaxes, dy, parts);
    (dq, dkv)
}

fn backward(plan: &Plan, inputs: Inputs, softmaxes: &[Softmax], dy: &[f32], parts: Vec<Gradients>) {
    let _time = profile::time(Part::AttentionBackward);
    let Plan {
        d, heads, queries, ..
    } = plan;
    share_out(parts, |index, gradients, share| {
        let rows = queries.range(index);
        let dy = &dy[rows.start * d..rows.end * d];
        let softmaxes = &softmaxes[rows.start * heads..rows.end * heads];
        let sentence = inputs.sentence(plan, index);
        sentence.backward(dy, softmaxes, gradients, share);
    });
}

fn share_out<T: Send>(parts: Vec<T>, work: impl Fn(usize, T, Share) + Sync) {
    let share = if parts.len() < 4 * rayon::current_num_threads() {
        Share::Heads
    } else {
        Share::Sentences
    };
    let parts = parts.into_par_iter().with_max_len(1).enumerate();
    parts.for_each(|(index, part)| work(index, part, share));
}
