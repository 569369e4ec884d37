//! The attention of one sentence, head after head.

use std::ops::Range;

use rayon::prelude::*;

use super::softmax::{Softmax, softmax_row, softmax_row_backward};
use super::{Mask, Plan};
use crate::buffer::Buffer;
use crate::gemm::{Mat, MatMut, Threads, Write, product};

/// What threads share among them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    Sentences,
    /// The heads of a sentence as well: where sentences are few.
    Heads,
}

impl Share {
    /// Does the work of every head with a part of a scratch, `size` long, and then gathers it.
    fn heads(
        self,
        heads: usize,
        size: usize,
        work: impl Fn(usize, &mut [f32]) + Sync,
        mut gather: impl FnMut(usize, &[f32]),
    ) {
        let at_once = if self == Share::Heads { heads } else { 1 };
        let mut scratch = Buffer::any(at_once * size);
        for first in (0..heads).step_by(at_once) {
            let work = |(i, part): (usize, &mut [f32])| work(first + i, part);
            match self {
                Share::Heads => scratch.par_chunks_mut(size).enumerate().for_each(work),
                Share::Sentences => work((0, &mut scratch)),
            }
            let parts = scratch.chunks(size).enumerate();
            parts.for_each(|(i, part)| gather(first + i, part));
        }
    }
}

/// Queries, keys and values of a batch: which columns of which rows.
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'a> {
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
    pub(crate) fn together(data: &'a [f32]) -> Self {
        let [q, k, v] = [0, 1, 2].map(|first| Columns {
            data,
            first,
            width: 3,
        });
        Self { q, k, v }
    }

    pub(crate) fn apart(q: &'a [f32], data: &'a [f32]) -> Self {
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

    pub(super) fn sentence(self, plan: &'a Plan, index: usize) -> Sentence<'a> {
        Sentence {
            inputs: self,
            plan,
            index,
        }
    }
}

/// Where one sentence's gradients go.
pub(super) enum Gradients<'a> {
    Together(&'a mut [f32]),
    Apart { q: &'a mut [f32], kv: &'a mut [f32] },
}

impl Gradients<'_> {
    fn clear(self) {
        match self {
            Gradients::Together(data) => data.fill(0.0),
            Gradients::Apart { q, kv } => {
                q.fill(0.0);
                kv.fill(0.0);
            }
        }
    }

    /// Puts the gradient of one head, `[rows, w]`, into its columns.
    fn set(&mut self, which: Which, plan: &Plan, head: usize, gradient: &[f32]) {
        let w = plan.head_width();
        let (data, first, width) = match (self, which) {
            (Gradients::Together(data), Which::Query) => (&mut **data, 0, 3),
            (Gradients::Together(data), Which::Key) => (&mut **data, 1, 3),
            (Gradients::Together(data), Which::Value) => (&mut **data, 2, 3),
            (Gradients::Apart { q, .. }, Which::Query) => (&mut **q, 0, 1),
            (Gradients::Apart { kv, .. }, Which::Key) => (&mut **kv, 0, 2),
            (Gradients::Apart { kv, .. }, Which::Value) => (&mut **kv, 1, 2),
        };
        set_columns(data, width * plan.d, first * plan.d + head * w, w, gradient);
    }
}

/// Writes `[rows, w]` into the columns from `first` on of a matrix `width` wide.
fn set_columns(dst: &mut [f32], width: usize, first: usize, w: usize, values: &[f32]) {
    let rows = dst.chunks_exact_mut(width).zip(values.chunks_exact(w));
    rows.for_each(|(dst, values)| dst[first..first + w].copy_from_slice(values));
}

#[derive(Clone, Copy)]
enum Which {
    Query,
    Key,
    Value,
}

/// One sentence: t queries, s keys.
pub(super) struct Sentence<'a> {
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
    /// sentence, not with its square. With each, how many keys its queries see at most.
    fn blocks(&self) -> impl Iterator<Item = (Range<usize>, usize)> + use<> {
        let ((t, s), mask) = (self.sizes(), self.plan.mask);
        let most = match mask {
            Mask::Full => t,
            Mask::Causal => CAUSAL_ROWS,
        };
        let rows = (SCORES / s.max(1)).clamp(1, most.max(1));
        (0..t).step_by(rows).map(move |start| {
            let end = t.min(start + rows);
            (start..end, mask.visible(end - 1, s))
        })
    }

    /// q kᵀ of a block of queries, `[rows, seen]`.
    fn score(&self, head: usize, (block, seen): &(Range<usize>, usize), scores: &mut Vec<f32>) {
        scores.resize(block.len() * seen, 0.0);
        let q = self.head(Which::Query, head).rows(block);
        let k = self.head(Which::Key, head).rows(&(0..*seen)).t();
        let dst = MatMut::new(scores, block.len(), *seen);
        product(dst, Write::Over, q, k, Threads::One);
    }

    pub(super) fn forward(&self, y: &mut [f32], softmaxes: &mut [Softmax], share: Share) {
        let (t, _) = self.sizes();
        let (d, w) = (self.plan.d, self.plan.head_width());
        if t == 0 {
            return;
        }
        let heads = softmaxes.chunks_mut(t).enumerate();
        if share == Share::Sentences {
            return heads.for_each(|(head, softmaxes)| {
                self.forward_head(head, (y, d, head * w), softmaxes);
            });
        }
        let mut contexts = Buffer::any(self.plan.heads * t * w);
        let parts: Vec<_> = contexts.chunks_mut(t * w).zip(heads).collect();
        parts
            .into_par_iter()
            .for_each(|(context, (head, softmaxes))| {
                self.forward_head(head, (context, w, 0), softmaxes);
            });
        for (head, context) in contexts.chunks(t * w).enumerate() {
            set_columns(y, d, head * w, w, context);
        }
    }

    /// The context `[t, w]` of one head, in the columns from `first` on of a matrix `width` wide.
    fn forward_head(
        &self,
        head: usize,
        (context, width, first): (&mut [f32], usize, usize),
        softmaxes: &mut [Softmax],
    ) {
        let ((t, s), w, scale) = (self.sizes(), self.plan.head_width(), self.plan.scale());
        let dropout = self.plan.dropout(self.index, head);
        let mut weights = Vec::new();
        for part in self.blocks() {
            self.score(head, &part, &mut weights);
            let (block, seen) = part;
            for (row, weights) in block.clone().zip(weights.chunks_exact_mut(seen.max(1))) {
                let visible = self.plan.mask.visible(row, s);
                softmaxes[row] = softmax_row(weights, visible, scale, dropout.row(row));
            }
            let dst = MatMut::columns(context, t, width, first, w).rows(&block);
            let value = self.head(Which::Value, head).rows(&(0..seen));
            let weights = Mat::new(&weights, block.len(), seen);
            product(dst, Write::Over, weights, value, Threads::One);
        }
    }

    pub(super) fn backward(
        &self,
        dy: &[f32],
        softmaxes: &[Softmax],
        mut gradients: Gradients,
        share: Share,
    ) {
        let ((t, s), plan) = (self.sizes(), self.plan);
        if t == 0 {
            return gradients.clear();
        }
        let w = plan.head_width();
        let work = |head: usize, scratch: &mut [f32]| {
            let (dq, rest) = scratch.split_at_mut(t * w);
            let (dk, dv) = rest.split_at_mut(s * w);
            self.backward_head(head, dy, &softmaxes[head * t..][..t], (dq, dk, dv));
        };
        share.heads(plan.heads, (t + 2 * s) * w, work, |head, scratch| {
            let (dq, rest) = scratch.split_at(t * w);
            let (dk, dv) = rest.split_at(s * w);
            gradients.set(Which::Query, plan, head, dq);
            gradients.set(Which::Key, plan, head, dk);
            gradients.set(Which::Value, plan, head, dv);
        });
    }

    /// The gradients of the queries `[t, w]`, keys and values `[s, w]` of one head.
    fn backward_head(
        &self,
        head: usize,
        dy: &[f32],
        softmaxes: &[Softmax],
        (dq, dk, dv): (&mut [f32], &mut [f32], &mut [f32]),
    ) {
        let ((t, s), plan) = (self.sizes(), self.plan);
        let (d, w, scale) = (plan.d, plan.head_width(), plan.scale());
        let dropout = plan.dropout(self.index, head);
        let mut weights = Vec::new(); // first the scores, then the dropped weights
        let mut slopes = Vec::new(); // gradient of the dropped weights, then of the scores
        debug_assert!(
            plan.mask == Mask::Full || s == t,
            "a block sees its last query's keys"
        );
        // A later block sees more keys than an earlier one, and adds to what that left.
        let several = self.blocks().nth(1).is_some();
        if several {
            dk.fill(0.0);
            dv.fill(0.0);
        }
        let write = Write::first(!several);
        for part in self.blocks() {
            self.score(head, &part, &mut weights);
            let (block, seen) = part;
            let (rows, keys) = (block.len(), 0..seen);
            slopes.resize(rows * seen, 0.0);
            let dy = Mat::columns(dy, t, d, head * w, w).rows(&block);
            let value = self.head(Which::Value, head).rows(&keys).t();
            let dst = MatMut::new(&mut slopes, rows, seen);
            product(dst, Write::Over, dy, value, Threads::One);
            let weights_and_slopes = weights
                .chunks_exact_mut(seen.max(1))
                .zip(slopes.chunks_exact_mut(seen.max(1)));
            for (row, (weights, slopes)) in block.clone().zip(weights_and_slopes) {
                let (visible, softmax) = (plan.mask.visible(row, s), (softmaxes[row], scale));
                softmax_row_backward(weights, slopes, visible, softmax, dropout.row(row));
            }
            let weights = Mat::new(&weights, rows, seen);
            let slopes = Mat::new(&slopes, rows, seen);
            let (query, key) = (self.head(Which::Query, head), self.head(Which::Key, head));
            let dv = MatMut::new(dv, s, w).rows(&keys);
            product(dv, write, weights.t(), dy, Threads::One);
            let dk = MatMut::new(dk, s, w).rows(&keys);
            product(dk, write, slopes.t(), query.rows(&block), Threads::One);
            let dq = MatMut::new(dq, t, w).rows(&block);
            product(dq, Write::Over, slopes, key.rows(&keys), Threads::One);
        }
    }
}

/// Scores that are held at once.
const SCORES: usize = 1 << 17;

/// Queries of a block under a causal mask: what no query of a block sees is not computed.
const CAUSAL_ROWS: usize = 64;
