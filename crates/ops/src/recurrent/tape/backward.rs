use super::super::gates::add_row;
use super::super::group::{row, row_mut};
use super::super::steps::Group;
use super::Fusion;
use super::cell::{self, Seen, SeenGradients};
use super::forward::{Shares, rows_mut};
use crate::buffer::Buffer;
use crate::gemm::{Mat, Write};

/// What the forward pass kept, and the gradients of its outputs.
#[derive(Clone, Copy)]
pub(super) struct Kept<'a> {
    pub(super) states: &'a [f32],
    pub(super) keys: &'a [f32],
    pub(super) kept: &'a [f32],
    pub(super) own: &'a [f32],
    pub(super) read: &'a [f32],
    pub(super) dstates: &'a [f32],
    /// Of γ', if it is an output.
    pub(super) dcontext: &'a [f32],
}

/// Outputs of the backward pass for a sentence of l tokens whose source has s.
pub(super) struct Back<'a> {
    /// `[l, X]`
    pub(super) dx: &'a mut [f32],
    /// `[l, 2h]`: what later steps add to the gradients of the states.
    pub(super) dtape: &'a mut [f32],
    /// `[l, h]`
    pub(super) dkeys: &'a mut [f32],
    /// `[l, h]`: of the query of the step after each token.
    pub(super) next: &'a mut [f32],
    /// The same of the query to the source.
    pub(super) source_next: &'a mut [f32],
    /// `[h]`
    pub(super) dvector: &'a mut [f32],
    pub(super) dsource_vector: &'a mut [f32],
    /// `[s, h]`
    pub(super) dsource_keys: &'a mut [f32],
    /// `[s, d]`
    pub(super) dsource_values: &'a mut [f32],
}

impl Shares<'_> {
    /// The weights are not transposed.
    pub(super) fn backward(&self, seen: Kept, group: Group<Back>) {
        let Group { order, mut parts } = group;
        let (layout, weights) = (self.layout, self.weights);
        let (h, b) = (layout.h, order.len());
        let (width, keep, d) = (layout.input(), layout.kept(), layout.read());
        let (columns, source_columns) = self.columns();
        let mut dstate = Buffer::any(b * 2 * h);
        // Of h' and c', and of what is read of the source.
        let (mut dsummary, mut dread) = (Buffer::any(b * 2 * h), Buffer::any(b * d));
        // Of the queries of the step after this one: zero for the last step of a sentence.
        let (mut dquery, mut dsource_query) = (Buffer::zeros(b * h), Buffer::zeros(b * h));
        let (mut dkey, mut dgates) = (Buffer::any(b * h), Buffer::any(b * 4 * h));
        let mut dreset = Buffer::any(b * h);
        for t in (0..self.steps.longest(&order)).rev() {
            let k = self.steps.going(&order, t);
            for (i, (&sentence, part)) in order.iter().zip(&mut parts).take(k).enumerate() {
                let dstate = row_mut(&mut dstate, i, 2 * h);
                dstate.copy_from_slice(row(seen.dstates, self.steps.row(sentence, t), 2 * h));
                add_row(dstate, row(part.dtape, t, 2 * h));
                row_mut(&mut dkey, i, h).copy_from_slice(row(part.dkeys, t, h));
                row_mut(part.next, t, h).copy_from_slice(row(&dquery, i, h));
                if layout.fusion.is_some() {
                    row_mut(part.source_next, t, h).copy_from_slice(row(&dsource_query, i, h));
                }
            }
            let dkeys = Mat::columns(&dkey, k, h, 0, h);
            weights
                .key
                .product(rows_mut(&mut dstate, 2 * h), Write::Add, dkeys);
            if let Some(reader) = &weights.source
                && reader.fusion == Fusion::Shallow
            {
                let dquery = Mat::columns(&dsource_query, k, h, 0, h);
                let to = rows_mut(&mut dstate, 2 * h);
                reader.query.product(to, Write::Add, dquery);
            }
            for (i, (&sentence, part)) in order.iter().zip(&mut parts).take(k).enumerate() {
                let here = self.steps.row(sentence, t);
                let kept = row(seen.kept, here, keep);
                let c_read = &kept[layout.kept_summary()][h..];
                let dx = row_mut(part.dx, t, width);
                let dgates = row_mut(&mut dgates, i, 4 * h);
                let dstate = row_mut(&mut dstate, i, 2 * h);
                let dc_read = &mut row_mut(&mut dsummary, i, 2 * h)[h..];
                let of_gates = &kept[layout.kept_gates()];
                cell::backward(of_gates, c_read, dgates, dc_read, dstate);
                dx[layout.gates()].copy_from_slice(dgates);
                match layout.fusion {
                    None => {}
                    Some(Fusion::Shallow) => {
                        let dcontext = row(seen.dcontext, here, h);
                        row_mut(&mut dread, i, d).copy_from_slice(dcontext);
                    }
                    Some(Fusion::Deep) => {
                        let dread = row_mut(&mut dread, i, d);
                        let dreset = row_mut(&mut dreset, i, h);
                        let r = &kept[layout.kept_reset()];
                        let values = &kept[layout.kept_read()][h..];
                        cell::gate_backward(r, values, &dstate[h..], dreset, &mut dread[h..]);
                        dx[layout.reset()].copy_from_slice(dreset);
                    }
                }
            }
            let of_gates = Mat::columns(&dgates, k, 4 * h, 0, 4 * h);
            let to = rows_mut(&mut dsummary, 2 * h);
            weights.recurrent.product(to, Write::Over, of_gates);
            let of_query = Mat::columns(&dquery, k, h, 0, h);
            let to = rows_mut(&mut dsummary, 2 * h);
            weights.query.product(to, Write::Add, of_query);
            if let Some(reader) = &weights.source {
                let to = rows_mut(&mut dread, d);
                match reader.fusion {
                    Fusion::Shallow => reader.gate.product(to, Write::Add, of_gates),
                    Fusion::Deep => {
                        let of_reset = Mat::columns(&dreset, k, h, 0, h);
                        reader.gate.product(to, Write::Over, of_reset);
                        let of_query = Mat::columns(&dsource_query, k, h, 0, h);
                        let to = rows_mut(&mut dread, d);
                        reader.query.product(to, Write::Add, of_query);
                    }
                }
            }
            for (i, (&sentence, part)) in order.iter().zip(&mut parts).take(k).enumerate() {
                let first = self.steps.row(sentence, 0);
                let here = first + t;
                let kept = row(seen.kept, here, keep);
                let dx = row_mut(part.dx, t, width);
                let tape = Seen {
                    keys: &seen.keys[first * h..here * h],
                    values: &seen.states[first * 2 * h..here * 2 * h],
                    vector: &weights.vector,
                };
                let into = SeenGradients {
                    keys: &mut part.dkeys[..t * h],
                    values: &mut part.dtape[..t * 2 * h],
                    vector: part.dvector,
                };
                let (query, own) = (&kept[layout.kept_query()], row(seen.own, here, columns));
                let dquery = row_mut(&mut dquery, i, h);
                let dsum = row(&dsummary, i, 2 * h);
                tape.read_backward(query, &own[..t], dsum, dquery, into);
                dx[layout.query()].copy_from_slice(dquery);
                let Some(fusion) = layout.fusion else {
                    continue;
                };
                let into = SeenGradients {
                    keys: part.dsource_keys,
                    values: part.dsource_values,
                    vector: part.dsource_vector,
                };
                let query = &kept[layout.kept_source_query()];
                let length = self.source_length(sentence);
                let read = &row(seen.read, here, source_columns)[..length];
                let dquery = row_mut(&mut dsource_query, i, h);
                let dsum = row(&dread, i, d);
                let source = self.source_of(sentence);
                source.read_backward(query, read, dsum, dquery, into);
                if fusion == Fusion::Deep {
                    dx[layout.source_query()].copy_from_slice(dquery);
                }
            }
        }
    }
}
