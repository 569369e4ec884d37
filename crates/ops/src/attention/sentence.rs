//! The attention of one sentence.

use std::ops::Range;

use rayon::prelude::*;

use super::gradients::{Gradients, HeadColumns, Which, set_columns};
use super::softmax::{LANES, Softmax, softmax_row, softmax_row_backward};
use super::{Mask, Plan};
use crate::buffer::Buffer;
use crate::gemm::{Mat, MatMut, Threads, Write, product, whole_tiles};

/// What a task is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    /// A sentence.
    Sentences,
    /// A head of a sentence. Used if sentences are few.
    Heads,
}

/// Queries, keys and values of a batch.
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

    /// The queries in blocks of at most [`SCORES`] scores, so that memory grows with the length of a
    /// sentence and not with its square.
    fn blocks(&self) -> impl Iterator<Item = QueryBlock> + use<> {
        let ((t, s), mask) = (self.sizes(), self.plan.mask);
        let most = match mask {
            Mask::Full => t,
            Mask::Causal => CAUSAL_ROWS,
        };
        let rows = (SCORES / s.max(1)).clamp(1, most.max(1));
        (0..t).step_by(rows).map(move |start| {
            let end = t.min(start + rows);
            QueryBlock {
                queries: start..end,
                seen: mask.visible(end - 1, s),
            }
        })
    }

    /// q kᵀ of a block of queries, `[rows, seen]`, in rows [`padded_width`] wide.
    fn score(&self, head: usize, block: &QueryBlock, scores: &mut Vec<f32>) {
        let q = self.head(Which::Query, head).rows(&block.queries);
        let k = self.head(Which::Key, head).rows(&(0..block.seen)).t();
        into_rows(scores, block.queries.len(), block.seen, q, k);
    }

    pub(super) fn forward(&self, y: &mut [f32], softmaxes: &mut [Softmax], share: Share) {
        let (t, _) = self.sizes();
        let (d, w) = (self.plan.d, self.plan.head_width());
        if t == 0 {
            return;
        }
        let heads = softmaxes.chunks_mut(t).enumerate();
        if share == Share::Sentences {
            let mut weights = Vec::new();
            return heads.for_each(|(head, softmaxes)| {
                let context = HeadColumns {
                    data: y,
                    width: d,
                    first: head * w,
                };
                self.forward_head(head, context, softmaxes, &mut weights);
            });
        }
        let mut contexts = Buffer::any(self.plan.heads * t * w);
        let parts: Vec<_> = contexts.chunks_mut(t * w).zip(heads).collect();
        parts
            .into_par_iter()
            .for_each(|(context, (head, softmaxes))| {
                let context = HeadColumns {
                    data: context,
                    width: w,
                    first: 0,
                };
                self.forward_head(head, context, softmaxes, &mut Vec::new());
            });
        for (head, context) in contexts.chunks(t * w).enumerate() {
            set_columns(y, d, head * w, w, context);
        }
    }

    /// Writes the context `[t, w]` of one head.
    fn forward_head(
        &self,
        head: usize,
        mut context: HeadColumns,
        softmaxes: &mut [Softmax],
        weights: &mut Vec<f32>,
    ) {
        let ((_, s), w, scale) = (self.sizes(), self.plan.head_width(), self.plan.scale());
        let dropout = self.plan.dropout(self.index, head);
        for block in self.blocks() {
            self.score(head, &block, weights);
            let QueryBlock {
                queries: block,
                seen,
            } = block;
            for (row, weights) in block
                .clone()
                .zip(weights.chunks_exact_mut(padded_width(seen)))
            {
                let visible = self.plan.mask.visible(row, s);
                softmaxes[row] = softmax_row(weights, visible, scale, dropout.row(row));
            }
            let dst = context.matrix(w).rows(&block);
            let value = self.head(Which::Value, head).rows(&(0..seen));
            let weights = Mat::columns(weights, block.len(), padded_width(seen), 0, seen);
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
        if share == Share::Sentences {
            let mut scratch = Scratch::default();
            for (head, softmaxes) in softmaxes.chunks(t).enumerate() {
                self.backward_head(head, dy, softmaxes, &mut gradients, &mut scratch);
            }
            return;
        }
        let w = plan.head_width();
        let mut of_heads = Buffer::any(plan.heads * (t + 2 * s) * w);
        let parts = of_heads.par_chunks_mut((t + 2 * s) * w).enumerate();
        parts.for_each(|(head, part)| {
            let (q, rest) = part.split_at_mut(t * w);
            let (k, v) = rest.split_at_mut(s * w);
            let (softmaxes, mut part) = (&softmaxes[head * t..][..t], Gradients::Head { q, k, v });
            self.backward_head(head, dy, softmaxes, &mut part, &mut Scratch::default());
        });
        for (head, part) in of_heads.chunks((t + 2 * s) * w).enumerate() {
            let (q, rest) = part.split_at(t * w);
            let (k, v) = rest.split_at(s * w);
            gradients.set(Which::Query, plan, head, q);
            gradients.set(Which::Key, plan, head, k);
            gradients.set(Which::Value, plan, head, v);
        }
    }

    /// The gradients of the queries `[t, w]`, keys and values `[s, w]` of one head.
    fn backward_head(
        &self,
        head: usize,
        dy: &[f32],
        softmaxes: &[Softmax],
        gradients: &mut Gradients,
        Scratch { weights, slopes }: &mut Scratch,
    ) {
        let ((t, s), plan) = (self.sizes(), self.plan);
        let (d, w, scale) = (plan.d, plan.head_width(), plan.scale());
        let dropout = plan.dropout(self.index, head);
        debug_assert!(
            plan.mask == Mask::Full || s == t,
            "a causal block sees the keys of its last query"
        );
        // Blocks share keys: each adds to the gradients of the keys that it sees.
        let several = self.blocks().nth(1).is_some();
        if several {
            gradients.matrix(Which::Key, plan, head).clear();
            gradients.matrix(Which::Value, plan, head).clear();
        }
        let write = Write::first(!several);
        for block in self.blocks() {
            self.score(head, &block, weights);
            let QueryBlock {
                queries: block,
                seen,
            } = block;
            let (rows, keys, width) = (block.len(), 0..seen, padded_width(seen));
            let dy = Mat::columns(dy, t, d, head * w, w).rows(&block);
            let value = self.head(Which::Value, head).rows(&keys).t();
            into_rows(slopes, rows, seen, dy, value);
            let weights_and_slopes = weights
                .chunks_exact_mut(width)
                .zip(slopes.chunks_exact_mut(width));
            for (row, (weights, slopes)) in block.clone().zip(weights_and_slopes) {
                let (visible, softmax) = (plan.mask.visible(row, s), softmaxes[row]);
                softmax_row_backward(weights, slopes, visible, softmax, scale, dropout.row(row));
            }
            let weights = Mat::columns(weights, rows, width, 0, seen);
            let slopes = Mat::columns(slopes, rows, width, 0, seen);
            let (query, key) = (self.head(Which::Query, head), self.head(Which::Key, head));
            let dv = gradients.matrix(Which::Value, plan, head).rows(&keys);
            product(dv, write, weights.t(), dy, Threads::One);
            let dk = gradients.matrix(Which::Key, plan, head).rows(&keys);
            product(dk, write, slopes.t(), query.rows(&block), Threads::One);
            let dq = gradients.matrix(Which::Query, plan, head).rows(&block);
            product(dq, Write::Over, slopes, key.rows(&keys), Threads::One);
        }
    }
}

/// A block of queries. Its scores are in memory at once.
struct QueryBlock {
    queries: Range<usize>,
    /// The number of keys that the last of them sees, which is the most.
    seen: usize,
}

/// Memory of a head's backward pass. It is written before it is read.
#[derive(Default)]
struct Scratch {
    /// First the scores, then the weights after dropout.
    weights: Vec<f32>,
    /// First the gradient of the weights after dropout, then that of the scores.
    slopes: Vec<f32>,
}

/// The width of rows of `seen` scores: rounded up, so that products and softmax have no remainder.
fn padded_width(seen: usize) -> usize {
    whole_tiles(seen.max(1)).next_multiple_of(LANES)
}

/// a · b, `[rows, seen]`, in rows [`padded_width`] wide.
fn into_rows(dst: &mut Vec<f32>, rows: usize, seen: usize, a: Mat, b: Mat) {
    dst.resize(rows * padded_width(seen), 0.0);
    let dst = MatMut::with_room(dst, rows, padded_width(seen), seen);
    product(dst, Write::Over, a, b, Threads::One);
}

/// The most scores in memory at once, per task.
const SCORES: usize = 1 << 17;

/// The most queries of a block under a causal mask. Keys after the last query of a block are skipped, so
/// small blocks compute fewer masked scores.
const CAUSAL_ROWS: usize = 64;
