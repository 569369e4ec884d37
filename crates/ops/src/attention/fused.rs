//! Attention on CPU: one task per sentence, head after head. Forward keeps two numbers of each
//! softmax; backward computes the weights again.

use std::ops::Range;
use std::sync::Mutex;

use candle_core::{CpuStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use super::Plan;
use super::softmax::{Softmax, softmax_row, softmax_row_backward};
use crate::cpu::{self, slice, view};
use crate::gemm::{Mat, MatMut, Threads, Write, product};
use crate::pass::Pass;

pub(super) fn self_attention(qkv: &Tensor, plan: Plan, pass: &Pass) -> Result<Tensor> {
    if pass.trains() {
        qkv.apply_op1(Fused::new(plan))
    } else {
        qkv.apply_op1_no_bwd(&Fused::new(plan))
    }
}

pub(super) fn attention(q: &Tensor, kv: &Tensor, plan: Plan, pass: &Pass) -> Result<Tensor> {
    if pass.trains() {
        q.apply_op2(kv, Fused::new(plan))
    } else {
        q.apply_op2_no_bwd(kv, &Fused::new(plan))
    }
}

struct Fused {
    plan: Plan,
    /// Of every query: per sentence `[heads, queries]`.
    softmaxes: Mutex<Option<Vec<Softmax>>>,
}

impl CustomOp1 for Fused {
    fn name(&self) -> &'static str {
        "self-attention"
    }

    fn cpu_fwd(&self, qkv: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        self.forward(Inputs::together(slice(qkv, layout)?))
    }

    fn bwd(&self, qkv: &Tensor, _: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        let mut gradient = vec![0.0; qkv.elem_count()];
        let parts = self.plan.queries.split(&mut gradient, 3 * self.plan.d);
        let parts = parts.into_iter().map(Gradients::Together).collect();
        self.backward(Inputs::together(&view(qkv)?), &view(dy)?, parts)?;
        Ok(Some(cpu::like(gradient, qkv)?))
    }
}

impl CustomOp2 for Fused {
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
        let Plan {
            d, queries, keys, ..
        } = &self.plan;
        let mut dq = vec![0.0; q.elem_count()];
        let mut dkv = vec![0.0; kv.elem_count()];
        let parts = queries.split(&mut dq, *d).into_iter();
        let parts = parts.zip(keys.split(&mut dkv, 2 * d));
        let parts = parts.map(|(q, kv)| Gradients::Apart { q, kv }).collect();
        self.backward(Inputs::apart(&view(q)?, &view(kv)?), &view(dy)?, parts)?;
        Ok((Some(cpu::like(dq, q)?), Some(cpu::like(dkv, kv)?)))
    }
}

impl Fused {
    fn new(plan: Plan) -> Self {
        let softmaxes = Mutex::new(None);
        Self { plan, softmaxes }
    }

    fn forward(&self, inputs: Inputs) -> Result<(CpuStorage, Shape)> {
        let Plan {
            d, heads, queries, ..
        } = &self.plan;
        let mut y = vec![0.0; queries.rows() * d];
        let mut softmaxes = vec![Softmax::default(); queries.rows() * heads];
        let parts = queries.split(&mut y, *d).into_iter();
        let parts: Vec<_> = parts.zip(queries.split(&mut softmaxes, *heads)).collect();
        parts
            .into_par_iter()
            .enumerate()
            .for_each(|(index, (y, softmaxes))| {
                inputs.sentence(&self.plan, index).forward(y, softmaxes);
            });
        *self.softmaxes.lock().unwrap_or_else(|e| e.into_inner()) = Some(softmaxes);
        Ok((CpuStorage::F32(y), (queries.rows(), *d).into()))
    }

    fn backward(&self, inputs: Inputs, dy: &[f32], parts: Vec<Gradients>) -> Result<()> {
        let softmaxes = self.softmaxes.lock().unwrap_or_else(|e| e.into_inner());
        let Some(softmaxes) = softmaxes.as_deref() else {
            bail!("attention went backward before forward")
        };
        let Plan {
            d, heads, queries, ..
        } = &self.plan;
        parts
            .into_par_iter()
            .enumerate()
            .for_each(|(index, gradients)| {
                let rows = queries.range(index);
                let dy = &dy[rows.start * d..rows.end * d];
                let softmaxes = &softmaxes[rows.start * heads..rows.end * heads];
                inputs
                    .sentence(&self.plan, index)
                    .backward(dy, softmaxes, gradients);
            });
        Ok(())
    }
}

/// Queries, keys and values of a batch: which columns of which rows.
#[derive(Clone, Copy)]
struct Inputs<'a> {
    q: Columns<'a>,
    k: Columns<'a>,
    v: Columns<'a>,
}

/// The d columns after `first · d` of a matrix `width · d` wide.
#[derive(Clone, Copy)]
struct Columns<'a> {
    data: &'a [f32],
    first: usize,
    width: usize,
}

impl<'a> Inputs<'a> {
    fn together(data: &'a [f32]) -> Self {
        let [q, k, v] = [0, 1, 2].map(|first| Columns {
            data,
            first,
            width: 3,
        });
        Self { q, k, v }
    }

    fn apart(q: &'a [f32], data: &'a [f32]) -> Self {
        let q = Columns {
            data: q,
            first: 0,
            width: 1,
        };
        let [k, v] = [0, 1].map(|first| Columns {
            data,
            first,
            width: 2,
        });
        Self { q, k, v }
    }

    fn sentence(self, plan: &'a Plan, index: usize) -> Sentence<'a> {
        Sentence {
            inputs: self,
            plan,
            index,
        }
    }
}

/// Where one sentence's gradients go.
enum Gradients<'a> {
    Together(&'a mut [f32]),
    Apart { q: &'a mut [f32], kv: &'a mut [f32] },
}

impl Gradients<'_> {
    /// The columns of one head of the queries, keys or values.
    fn head(&mut self, which: Which, plan: &Plan, rows: usize, head: usize) -> MatMut<'_> {
        let w = plan.head_width();
        let (data, first, width) = match (self, which) {
            (Gradients::Together(data), Which::Query) => (&mut **data, 0, 3),
            (Gradients::Together(data), Which::Key) => (&mut **data, 1, 3),
            (Gradients::Together(data), Which::Value) => (&mut **data, 2, 3),
            (Gradients::Apart { q, .. }, Which::Query) => (&mut **q, 0, 1),
            (Gradients::Apart { kv, .. }, Which::Key) => (&mut **kv, 0, 2),
            (Gradients::Apart { kv, .. }, Which::Value) => (&mut **kv, 1, 2),
        };
        MatMut::columns(data, rows, width * plan.d, first * plan.d + head * w, w)
    }
}

#[derive(Clone, Copy)]
enum Which {
    Query,
    Key,
    Value,
}

/// One sentence: t queries, s keys.
struct Sentence<'a> {
    inputs: Inputs<'a>,
    plan: &'a Plan,
    index: usize,
}

impl Sentence<'_> {
    fn sizes(&self) -> (usize, usize) {
        let Plan { queries, keys, .. } = self.plan;
        (queries.lengths()[self.index], keys.lengths()[self.index])
    }

    /// One head of the queries, keys or values: `[t or s, w]`.
    fn head(&self, which: Which, head: usize) -> Mat<'_> {
        let (columns, segments) = match which {
            Which::Query => (&self.inputs.q, &self.plan.queries),
            Which::Key => (&self.inputs.k, &self.plan.keys),
            Which::Value => (&self.inputs.v, &self.plan.keys),
        };
        let (d, w) = (self.plan.d, self.plan.head_width());
        let (rows, width) = (segments.range(self.index), columns.width * d);
        let data = &columns.data[rows.start * width..rows.end * width];
        Mat::columns(data, rows.len(), width, columns.first * d + head * w, w)
    }

    /// The queries, in blocks whose scores are few enough to hold: memory grows with the length of a
    /// sentence, not with its square.
    fn blocks(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (t, s) = self.sizes();
        let rows = (SCORES / s.max(1)).clamp(1, t.max(1));
        (0..t)
            .step_by(rows)
            .map(move |start| start..t.min(start + rows))
    }

    /// q kᵀ of a block of queries, `[rows, s]`.
    fn score(&self, head: usize, block: &Range<usize>, scores: &mut Vec<f32>) {
        let (_, s) = self.sizes();
        scores.resize(block.len() * s, 0.0);
        let q = self.head(Which::Query, head).rows(block);
        let k = self.head(Which::Key, head).t();
        product(
            MatMut::new(scores, block.len(), s),
            Write::Over,
            q,
            k,
            Threads::One,
        );
    }

    fn forward(&self, y: &mut [f32], softmaxes: &mut [Softmax]) {
        let (t, s) = self.sizes();
        let (d, w, scale) = (self.plan.d, self.plan.head_width(), self.plan.scale());
        let mut weights = Vec::new();
        for (head, block) in heads_and_blocks(self.plan.heads, || self.blocks()) {
            self.score(head, &block, &mut weights);
            let dropout = self.plan.dropout(self.index, head);
            for (row, weights) in block.clone().zip(weights.chunks_exact_mut(s.max(1))) {
                let visible = self.plan.mask.visible(row, s);
                let softmax = softmax_row(weights, visible, scale, dropout.row(row));
                softmaxes[head * t + row] = softmax;
            }
            let dst = MatMut::columns(y, t, d, head * w, w).rows(&block);
            let weights = Mat::new(&weights, block.len(), s);
            product(
                dst,
                Write::Over,
                weights,
                self.head(Which::Value, head),
                Threads::One,
            );
        }
    }

    fn backward(&self, dy: &[f32], softmaxes: &[Softmax], mut gradients: Gradients) {
        let (t, s) = self.sizes();
        let (plan, d, w) = (self.plan, self.plan.d, self.plan.head_width());
        let mut weights = Vec::new(); // first the scores, then the dropped weights
        let mut slopes = Vec::new(); // gradient of the dropped weights, then of the scores
        for (head, block) in heads_and_blocks(plan.heads, || self.blocks()) {
            let rows = block.len();
            let dy = Mat::columns(dy, t, d, head * w, w).rows(&block);
            let value = self.head(Which::Value, head).t();
            self.score(head, &block, &mut weights);
            slopes.resize(rows * s, 0.0);
            product(
                MatMut::new(&mut slopes, rows, s),
                Write::Over,
                dy,
                value,
                Threads::One,
            );
            let dropout = plan.dropout(self.index, head);
            let width = s.max(1);
            let values = weights
                .chunks_exact_mut(width)
                .zip(slopes.chunks_exact_mut(width));
            for (row, (weights, slopes)) in block.clone().zip(values) {
                softmax_row_backward(
                    weights,
                    slopes,
                    plan.mask.visible(row, s),
                    (softmaxes[head * t + row], plan.scale()),
                    dropout.row(row),
                );
            }
            let (weights, slopes) = (Mat::new(&weights, rows, s), Mat::new(&slopes, rows, s));
            let write = Write::first(block.start == 0);
            let dv = gradients.head(Which::Value, plan, s, head);
            product(dv, write, weights.t(), dy, Threads::One);
            let dk = gradients.head(Which::Key, plan, s, head);
            let query = self.head(Which::Query, head).rows(&block);
            product(dk, write, slopes.t(), query, Threads::One);
            let dq = gradients.head(Which::Query, plan, t, head).rows(&block);
            product(
                dq,
                Write::Over,
                slopes,
                self.head(Which::Key, head),
                Threads::One,
            );
        }
    }
}

/// Scores that are held at once.
const SCORES: usize = 1 << 17;

fn heads_and_blocks<B: Iterator<Item = Range<usize>>>(
    heads: usize,
    blocks: impl Fn() -> B,
) -> impl Iterator<Item = (usize, Range<usize>)> {
    (0..heads).flat_map(move |head| blocks().map(move |block| (head, block)))
}
