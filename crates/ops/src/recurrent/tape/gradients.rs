//! The gradients of the weights, over all tokens at once.

use candle_core::Result;

use super::layout::Layout;
use super::{Fusion, TapeLayer};
use crate::gemm::{Mat, MatMut, Threads, Write, product};
use crate::linear::Linear;
use crate::weight::Weight;

/// What the gradients of matrices are made of.
pub(super) struct Made<'a> {
    pub(super) n: usize,
    pub(super) dx: Columns<'a>,
    pub(super) kept: Columns<'a>,
    pub(super) states: Columns<'a>,
    pub(super) dkeys: Columns<'a>,
    pub(super) next: Columns<'a>,
    pub(super) source_next: Columns<'a>,
}

/// Some columns of a matrix, from one on.
#[derive(Clone, Copy)]
pub(super) struct Columns<'a> {
    data: &'a [f32],
    width: usize,
    first: usize,
}

impl<'a> Columns<'a> {
    pub(super) fn new(data: &'a [f32], width: usize) -> Self {
        Self {
            data,
            width,
            first: 0,
        }
    }

    fn at(self, first: usize) -> Self {
        Self { first, ..self }
    }

    fn mat(self, rows: usize, cols: usize) -> Mat<'a> {
        Mat::columns(self.data, rows, self.width, self.first, cols)
    }
}

impl Made<'_> {
    /// The gradients of matrices: one product each, over all tokens.
    pub(super) fn accumulate(&self, layer: &TapeLayer, layout: Layout) -> Result<()> {
        let summary = self.kept.at(layout.kept_summary().start);
        let gates = self.dx.at(layout.gates().start);
        self.add(&layer.recurrent, gates, summary)?;
        self.add(&layer.query, self.next, summary)?;
        self.add(&layer.key, self.dkeys, self.states)?;
        let Some(reader) = &layer.source else {
            return Ok(());
        };
        let read = self.kept.at(layout.kept_read().start);
        match reader.fusion {
            Fusion::Shallow => {
                self.add(&reader.query, self.source_next, self.states)?;
                self.add(&reader.gate, gates, read)
            }
            Fusion::Deep => {
                self.add(&reader.query, self.source_next, read)?;
                self.add(&reader.gate, self.dx.at(layout.reset().start), read)
            }
        }
    }

    /// dW (+)= dyᵀ x.
    fn add(&self, linear: &Linear, dy: Columns, x: Columns) -> Result<()> {
        let (outputs, inputs) = linear.weight.dims2()?;
        linear.weight.accumulate(|dw, write| {
            let (dy, x) = (dy.mat(self.n, outputs), x.mat(self.n, inputs));
            let dw = MatMut::new(dw, outputs, inputs);
            product(dw, write, dy.t(), x, Threads::All);
        })
    }
}

/// Adds the gradients of a vector by all sentences, in their order.
pub(super) fn add_rows(vector: &Weight, rows: &[f32], h: usize) -> Result<()> {
    vector.accumulate(|sum, write| {
        if write == Write::Over {
            sum.fill(0.0);
        }
        for row in rows.chunks_exact(h) {
            sum.iter_mut().zip(row).for_each(|(sum, row)| *sum += row);
        }
    })
}
