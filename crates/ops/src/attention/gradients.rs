//! The places of the gradients of queries, keys and values.

use super::Plan;
use crate::gemm::MatMut;

#[derive(Clone, Copy)]
pub(super) enum Which {
    Query,
    Key,
    Value,
}

/// Where gradients go.
pub(super) enum Gradients<'a> {
    /// A sentence's, side by side.
    Together(&'a mut [f32]),
    Apart {
        q: &'a mut [f32],
        kv: &'a mut [f32],
    },
    /// One head's alone.
    Head {
        q: &'a mut [f32],
        k: &'a mut [f32],
        v: &'a mut [f32],
    },
}

impl Gradients<'_> {
    pub(super) fn clear(self) {
        match self {
            Gradients::Together(data) => data.fill(0.0),
            Gradients::Apart { q, kv } => [q, kv].into_iter().for_each(|part| part.fill(0.0)),
            Gradients::Head { q, k, v } => [q, k, v].into_iter().for_each(|part| part.fill(0.0)),
        }
    }

    /// The place of one head's queries, keys or values, `[rows, w]`: a matrix, how wide it is, and the
    /// first of their columns.
    fn place(&mut self, which: Which, plan: &Plan, head: usize) -> (&mut [f32], usize, usize) {
        let (d, w) = (plan.d, plan.head_width());
        let (data, first, width) = match (self, which) {
            (Gradients::Together(data), Which::Query) => (&mut **data, 0, 3),
            (Gradients::Together(data), Which::Key) => (&mut **data, 1, 3),
            (Gradients::Together(data), Which::Value) => (&mut **data, 2, 3),
            (Gradients::Apart { q, .. }, Which::Query) => (&mut **q, 0, 1),
            (Gradients::Apart { kv, .. }, Which::Key) => (&mut **kv, 0, 2),
            (Gradients::Apart { kv, .. }, Which::Value) => (&mut **kv, 1, 2),
            (Gradients::Head { q, .. }, Which::Query) => return (&mut **q, w, 0),
            (Gradients::Head { k, .. }, Which::Key) => return (&mut **k, w, 0),
            (Gradients::Head { v, .. }, Which::Value) => return (&mut **v, w, 0),
        };
        (data, width * d, first * d + head * w)
    }

    /// The same as a matrix.
    pub(super) fn matrix(&mut self, which: Which, plan: &Plan, head: usize) -> MatMut<'_> {
        let (data, width, first) = self.place(which, plan, head);
        let rows = data.len() / width;
        MatMut::columns(data, rows, width, first, plan.head_width())
    }

    /// Puts the gradient of one head, `[rows, w]`, into its columns.
    pub(super) fn set(&mut self, which: Which, plan: &Plan, head: usize, gradient: &[f32]) {
        let (data, width, first) = self.place(which, plan, head);
        set_columns(data, width, first, plan.head_width(), gradient);
    }
}

/// Writes `[rows, w]` into the columns from `first` on of a matrix `width` wide.
pub(super) fn set_columns(dst: &mut [f32], width: usize, first: usize, w: usize, values: &[f32]) {
    let rows = dst.chunks_exact_mut(width).zip(values.chunks_exact(w));
    rows.for_each(|(dst, values)| dst[first..first + w].copy_from_slice(values));
}
