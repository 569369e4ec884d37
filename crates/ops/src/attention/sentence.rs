//! The attention of one sentence, head after head.

use std::ops::Range;

use rayon::prelude::*;

use super::gradients::{Gradients, Which, set_columns};
use super::softmax::{LANES, Softmax, softmax_row, softmax_row_backward};
use super::{Mask, Plan};
use crate::buffer::Buffer;
use crate::gemm::{Mat, MatMut, Threads, Write, product, whole_tiles};

/// What threads share among them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    Sentences,
    /// The heads of a sentence as well: where sentences are few.
    Heads,
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

    /// q kᵀ of a block of queries, `[rows, seen]`, in rows as wide as [`room`] says.
    fn score(&self, head: usize, (block, seen): &(Range<usize>, usize), scores: &mut Vec<f32>) {
        let q = self.head(Which::Query, head).rows(block);
        let k = self.head(Which::Key, head).rows(&(0..*seen)).t();
        into_rows(scores, block.len(), *seen, q, k);
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
                self.forward_head(head, (y, d, head * w), softmaxes, &mut weights);
            });
        }
        let mut contexts = Buffer::any(self.plan.heads * t * w);
        let parts: Vec<_> = contexts.chunks_mut(t * w).zip(heads).collect();
        parts
            .into_par_iter()
            .for_each(|(context, (head, softmaxes))| {
                self.forward_head(head, (context, w, 0), softmaxes, &mut Vec::new());
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
        weights: &mut Vec<f32>,
    ) {
        let ((t, s), w, scale) = (self.sizes(), self.plan.head_width(), self.plan.scale());
        let dropout = self.plan.dropout(self.index, head);
        for part in self.blocks() {
            self.score(head, &part, weights);
            let (block, seen) = part;
            for (row, weights) in block.clone().zip(weights.chunks_exact_mut(room(seen))) {
                let visible = self.plan.mask.visible(row, s);
                softmaxes[row] = softmax_row(weights, visible, scale, dropout.row(row));
            }
            let dst = MatMut::columns(context, t, width, first, w).rows(&block);
            let value = self.head(Which::Value, head).rows(&(0..seen));
            let weights = Mat::columns(weights, block.len(), room(seen), 0, seen);
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
            "a block sees its last query's keys"
        );
        // A later block sees more keys than an earlier one, and adds to what that left.
        let several = self.blocks().nth(1).is_some();
        if several {
            gradients.matrix(Which::Key, plan, head).clear();
            gradients.matrix(Which::Value, plan, head).clear();
        }
        let write = Write::first(!several);
        for part in self.blocks() {
            self.score(head, &part, weights);
            let (block, seen) = part;
            let (rows, keys, width) = (block.len(), 0..seen, room(seen));
            let dy = Mat::columns(dy, t, d, head * w, w).rows(&block);
            let value = self.head(Which::Value, head).rows(&keys).t();
            into_rows(slopes, rows, seen, dy, value);
            let weights_and_slopes = weights
                .chunks_exact_mut(width)
                .zip(slopes.chunks_exact_mut(width));
            for (row, (weights, slopes)) in block.clone().zip(weights_and_slopes) {
                let (visible, softmax) = (plan.mask.visible(row, s), (softmaxes[row], scale));
                softmax_row_backward(weights, slopes, visible, softmax, dropout.row(row));
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

/// What a head's backward fills before it reads it.
#[derive(Default)]
struct Scratch {
    /// First the scores, then the dropped weights.
    weights: Vec<f32>,
    /// The gradient of the dropped weights, then of the scores.
    slopes: Vec<f32>,
}

/// How wide the rows of `seen` scores are: products and softmax then go over them without an edge.
fn room(seen: usize) -> usize {
    whole_tiles(seen.max(1)).next_multiple_of(LANES)
}

/// a · b, `[rows, seen]`, in rows as wide as [`room`] says.
fn into_rows(dst: &mut Vec<f32>, rows: usize, seen: usize, a: Mat, b: Mat) {
    dst.resize(rows * room(seen), 0.0);
    let dst = MatMut::with_room(dst, rows, room(seen), seen);
    product(dst, Write::Over, a, b, Threads::One);
}

/// Scores that are held at once.
const SCORES: usize = 1 << 17;

/// Queries of a block under a causal mask: what no query of a block sees is not computed.
const CAUSAL_ROWS: usize = 64;
