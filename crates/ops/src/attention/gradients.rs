//! The buffers that the gradients of queries, keys and values are written to.

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
    /// Of a sentence: queries, keys and values side by side `[t, 3d]`.
    Together(&'a mut [f32]),
    Apart {
        q: &'a mut [f32],
        kv: &'a mut [f32],
    },
    /// Of one head: each in a buffer of its own.
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

    /// The columns of one head's queries, keys or values.
    fn place(&mut self, which: Which, plan: &Plan, head: usize) -> HeadColumns<'_> {
        let (d, w) = (plan.d, plan.head_width());
        let alone = |data| HeadColumns {
            data,
            width: w,
            first: 0,
        };
        let (data, first, width) = match (self, which) {
            (Gradients::Together(data), Which::Query) => (&mut **data, 0, 3),
            (Gradients::Together(data), Which::Key) => (&mut **data, 1, 3),
            (Gradients::Together(data), Which::Value) => (&mut **data, 2, 3),
            (Gradients::Apart { q, .. }, Which::Query) => (&mut **q, 0, 1),
            (Gradients::Apart { kv, .. }, Which::Key) => (&mut **kv, 0, 2),
            (Gradients::Apart { kv, .. }, Which::Value) => (&mut **kv, 1, 2),
            (Gradients::Head { q, .. }, Which::Query) => return alone(q),
            (Gradients::Head { k, .. }, Which::Key) => return alone(k),
            (Gradients::Head { v, .. }, Which::Value) => return alone(v),
        };
        HeadColumns {
            data,
            width: width * d,
            first: first * d + head * w,
        }
    }

    /// The same as a matrix.
    pub(super) fn matrix(&mut self, which: Which, plan: &Plan, head: usize) -> MatMut<'_> {
        let w = plan.head_width();
        self.place(which, plan, head).into_matrix(w)
    }

    /// Writes the gradient of one head, `[rows, w]`, into its columns.
    pub(super) fn set(&mut self, which: Which, plan: &Plan, head: usize, gradient: &[f32]) {
        let HeadColumns { data, width, first } = self.place(which, plan, head);
        set_columns(data, width, first, plan.head_width(), gradient);
    }
}

/// The columns of one head in a matrix: those from `first` on of rows that are `width` wide.
pub(super) struct HeadColumns<'a> {
    pub(super) data: &'a mut [f32],
    pub(super) width: usize,
    pub(super) first: usize,
}

impl<'a> HeadColumns<'a> {
    /// The columns of a head of width w.
    pub(super) fn matrix(&mut self, w: usize) -> MatMut<'_> {
        let rows = self.data.len() / self.width;
        MatMut::columns(self.data, rows, self.width, self.first, w)
    }

    fn into_matrix(self, w: usize) -> MatMut<'a> {
        let rows = self.data.len() / self.width;
        MatMut::columns(self.data, rows, self.width, self.first, w)
    }
}

/// Writes `[rows, w]` into the columns from `first` on of a matrix `width` wide.
pub(super) fn set_columns(dst: &mut [f32], width: usize, first: usize, w: usize, values: &[f32]) {
    let rows = dst.chunks_exact_mut(width).zip(values.chunks_exact(w));
    rows.for_each(|(dst, values)| dst[first..first + w].copy_from_slice(values));
}
