//! All steps of a group of sentences on one thread, without synchronisation between steps.

use super::steps::{Group, Steps};
use super::{Cell, gates};
use crate::buffer::Buffer;
use crate::gemm::{Mat, PackedMatrix, RowsMut, Write};

/// The inputs that all groups of one layer share.
pub(super) struct Layer<'a> {
    pub(super) cell: Cell,
    pub(super) h: usize,
    pub(super) steps: &'a Steps,
    /// The state `[b, S]` that each sentence starts from.
    pub(super) start: Option<&'a [f32]>,
}

/// Outputs of the forward pass for a sentence of l tokens: states `[l, S]`, and what the backward pass needs.
pub(super) struct Ahead<'a> {
    pub(super) states: &'a mut [f32],
    pub(super) kept: &'a mut [f32],
}

/// Outputs of the backward pass: dx `[l, G h]`, the h `[l, h]` before each token, and d start `[S]`.
pub(super) struct Back<'a> {
    pub(super) dx: &'a mut [f32],
    pub(super) before: &'a mut [f32],
    pub(super) dstart: &'a mut [f32],
}

/// Inputs of the backward pass: states and their gradients `[n, S]`, and what the forward pass kept.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) states: &'a [f32],
    pub(super) kept: &'a [f32],
    pub(super) dstates: &'a [f32],
}

pub(super) fn row(values: &[f32], row: usize, width: usize) -> &[f32] {
    &values[row * width..][..width]
}

pub(super) fn row_mut(values: &mut [f32], row: usize, width: usize) -> &mut [f32] {
    &mut values[row * width..][..width]
}

impl Layer<'_> {
    /// The widths of x, of a state and of what is kept.
    fn widths(&self) -> (usize, usize, usize) {
        let (cell, h) = (self.cell, self.h);
        (cell.gates() * h, cell.state_width(h), cell.kept_width(h))
    }

    /// `weight` is Uᵀ `[h, G h]`.
    pub(super) fn forward(
        &self,
        x: &[f32],
        weight: &PackedMatrix,
        bias: Option<&[f32]>,
        group: Group<Ahead>,
    ) {
        let Group { order, mut parts } = group;
        let (gate, width, keep) = self.widths();
        let mut state = Buffer::zeros(order.len() * width);
        let mut u = Buffer::zeros(order.len() * gate);
        if let Some(start) = self.start {
            for (state, &sentence) in state.chunks_exact_mut(width).zip(&order) {
                state.copy_from_slice(row(start, sentence, width));
            }
        }
        for t in 0..self.steps.longest(&order) {
            let k = self.steps.going(&order, t);
            if let Some(bias) = bias {
                let rows = u.chunks_exact_mut(gate).take(k);
                rows.for_each(|u| u.copy_from_slice(bias));
            }
            // Without a start, the first state is zero.
            if t > 0 || self.start.is_some() {
                let write = Write::first(bias.is_none());
                let a = Mat::columns(&state, k, width, 0, self.h);
                let dst = RowsMut {
                    data: &mut u,
                    width: gate,
                };
                weight.product(dst, write, a);
            }
            let rows = order.iter().zip(&mut parts).take(k);
            for (i, (&sentence, part)) in rows.enumerate() {
                let place = self.steps.place(sentence, t);
                let x = row(x, self.steps.row(sentence, t), gate);
                let next = row_mut(part.states, place, width);
                let kept = row_mut(part.kept, place, keep);
                let state = row_mut(&mut state, i, width);
                gates::forward(self.cell, x, row(&u, i, gate), state, next, kept);
                state.copy_from_slice(next);
            }
        }
    }

    /// `weight` is U `[G h, h]`.
    pub(super) fn backward(&self, seen: Seen, weight: &PackedMatrix, group: Group<Back>) {
        let Group { order, mut parts } = group;
        let (gate, width, keep) = self.widths();
        let nothing = Buffer::zeros(width);
        let mut dstate = Buffer::zeros(order.len() * width);
        let mut du = Buffer::any(order.len() * gate);
        for t in (0..self.steps.longest(&order)).rev() {
            let k = self.steps.going(&order, t);
            let rows = order.iter().zip(&mut parts).take(k);
            for (i, (&sentence, part)) in rows.enumerate() {
                let (place, here) = (self.steps.place(sentence, t), self.steps.row(sentence, t));
                let previous = match (t, self.start) {
                    (0, Some(start)) => row(start, sentence, width),
                    (0, None) => &nothing,
                    _ => row(seen.states, self.steps.row(sentence, t - 1), width),
                };
                let kept = row(seen.kept, here, keep);
                let dx = row_mut(part.dx, place, gate);
                let dstate = row_mut(&mut dstate, i, width);
                gates::add_row(dstate, row(seen.dstates, here, width));
                gates::backward(self.cell, kept, previous, dx, dstate);
                gates::recurrent_side(self.cell, kept, dx, row_mut(&mut du, i, gate));
                row_mut(part.before, place, self.h).copy_from_slice(&previous[..self.h]);
            }
            if t > 0 || self.start.is_some() {
                let du = Mat::columns(&du, k, gate, 0, gate);
                let dst = RowsMut {
                    data: &mut dstate,
                    width,
                };
                weight.product(dst, Write::Add, du);
            }
        }
        for (part, dstate) in parts.iter_mut().zip(dstate.chunks_exact(width)) {
            part.dstart.copy_from_slice(&dstate[..part.dstart.len()]);
        }
    }
}
