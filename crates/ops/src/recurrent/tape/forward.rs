use super::super::gates::add_row;
use super::super::group::{row, row_mut};
use super::super::steps::{Group, Steps};
use super::cell::{self, Seen};
use super::layout::Layout;
use super::{Fusion, TapeLayer};
use crate::buffer::Buffer;
use crate::cpu::view;
use crate::gemm::{Mat, PackedMatrix, RowsMut, Write};
use crate::linear::Linear;
use attend_batch::Segments;
use candle_core::Result;

/// The weights of a layer in the order in which products read them: transposed in the forward pass.
pub(super) struct PackedLayer {
    pub(super) recurrent: PackedMatrix,
    pub(super) query: PackedMatrix,
    pub(super) key: PackedMatrix,
    pub(super) vector: Buffer,
    pub(super) source: Option<PackedReader>,
}

pub(super) struct PackedReader {
    pub(super) fusion: Fusion,
    pub(super) query: PackedMatrix,
    pub(super) gate: PackedMatrix,
    pub(super) vector: Buffer,
}

impl PackedLayer {
    pub(super) fn new(layer: &TapeLayer, transposed: bool) -> Result<Self> {
        let pack = |linear: &Linear| -> Result<PackedMatrix> {
            let (outputs, inputs) = linear.weight.dims2()?;
            let values = view(linear.weight.value())?;
            let matrix = Mat::new(&values, outputs, inputs);
            Ok(match transposed {
                true => PackedMatrix::new(matrix.t(), inputs, outputs),
                false => PackedMatrix::new(matrix, outputs, inputs),
            })
        };
        let source = layer.source.as_ref().map(|source| {
            Result::Ok(PackedReader {
                fusion: source.fusion,
                query: pack(&source.query)?,
                gate: pack(&source.gate)?,
                vector: Buffer::copy_of(&view(source.vector.value())?),
            })
        });
        Ok(Self {
            recurrent: pack(&layer.recurrent)?,
            query: pack(&layer.query)?,
            key: pack(&layer.key)?,
            vector: Buffer::copy_of(&view(layer.vector.value())?),
            source: source.transpose()?,
        })
    }
}

/// What all groups of sentences share.
pub(super) struct Shares<'a> {
    pub(super) layout: Layout,
    pub(super) steps: &'a Steps,
    pub(super) weights: &'a PackedLayer,
    pub(super) source: Option<SourceSlices<'a>>,
}

/// Keys `[m, h]` and values `[m, d]` of all sources.
#[derive(Clone, Copy)]
pub(super) struct SourceSlices<'a> {
    pub(super) keys: &'a [f32],
    pub(super) values: &'a [f32],
    pub(super) segments: &'a Segments,
}

/// Outputs of the forward pass for a sentence of l tokens.
pub(super) struct Ahead<'a> {
    /// `[l, 2h]`
    pub(super) states: &'a mut [f32],
    /// `[l, h]`
    pub(super) keys: &'a mut [f32],
    /// `[l, K]`
    pub(super) kept: &'a mut [f32],
    /// `[l, columns]`
    pub(super) own: &'a mut [f32],
    /// `[l, columns of the source]`
    pub(super) read: &'a mut [f32],
}

impl Shares<'_> {
    /// What a step sees of the source of a sentence.
    pub(super) fn source_of(&self, sentence: usize) -> Seen<'_> {
        let (Some(source), Some(reader)) = (&self.source, &self.weights.source) else {
            let none: &[f32] = &[];
            return Seen {
                keys: none,
                values: none,
                vector: none,
            };
        };
        let (rows, h, d) = (
            source.segments.range(sentence),
            self.layout.h,
            self.layout.read(),
        );
        Seen {
            keys: &source.keys[rows.start * h..rows.end * h],
            values: &source.values[rows.start * d..rows.end * d],
            vector: &reader.vector,
        }
    }

    /// The length of the source of a sentence.
    pub(super) fn source_length(&self, sentence: usize) -> usize {
        let source = self.source.as_ref();
        source.map_or(0, |source| source.segments.lengths()[sentence])
    }

    /// The columns of the weights over the tape, and over the source.
    pub(super) fn columns(&self) -> (usize, usize) {
        let source = self.source.as_ref();
        (
            self.steps.sentences().longest(),
            source.map_or(0, |source| source.segments.longest()),
        )
    }

    pub(super) fn forward(&self, x: &[f32], group: Group<Ahead>) {
        let Group { order, mut parts } = group;
        let (layout, weights) = (self.layout, self.weights);
        let (h, b) = (layout.h, order.len());
        let (width, keep, d) = (layout.input(), layout.kept(), layout.read());
        let (columns, source_columns) = self.columns();
        // Of each sentence that is going: the last step's state `[2h]`, h' and c', and what it read.
        let mut state = Buffer::zeros(b * 2 * h);
        let mut summary = Buffer::zeros(b * 2 * h);
        let mut read = Buffer::zeros(b * d);
        let (mut query, mut source_query) = (Buffer::zeros(b * h), Buffer::zeros(b * h));
        let (mut gates, mut key) = (Buffer::any(b * 4 * h), Buffer::any(b * h));
        let (mut reset, mut added) = (Buffer::any(b * h), Buffer::zeros(h));
        for t in 0..self.steps.longest(&order) {
            let k = self.steps.going(&order, t);
            if t > 0 {
                let last = Mat::columns(&summary, k, 2 * h, 0, h);
                weights
                    .query
                    .product(rows_mut(&mut query, h), Write::Over, last);
                if let Some(reader) = &weights.source {
                    let last = match reader.fusion {
                        Fusion::Shallow => Mat::columns(&state, k, 2 * h, 0, h),
                        Fusion::Deep => Mat::columns(&read, k, d, 0, h),
                    };
                    let to = rows_mut(&mut source_query, h);
                    reader.query.product(to, Write::Over, last);
                }
            }
            for (i, (&sentence, part)) in order.iter().zip(&mut parts).take(k).enumerate() {
                let x = row(x, self.steps.row(sentence, t), width);
                let query = row_mut(&mut query, i, h);
                add_row(query, &x[layout.query()]);
                let tape = Seen {
                    keys: &part.keys[..t * h],
                    values: &part.states[..t * 2 * h],
                    vector: &weights.vector,
                };
                let own = &mut row_mut(part.own, t, columns)[..t];
                tape.read(query, own, row_mut(&mut summary, i, 2 * h));
                if let Some(reader) = &weights.source {
                    let query = row_mut(&mut source_query, i, h);
                    if reader.fusion == Fusion::Deep {
                        add_row(query, &x[layout.source_query()]);
                    }
                    let length = self.source_length(sentence);
                    let own = &mut row_mut(part.read, t, source_columns)[..length];
                    let sum = row_mut(&mut read, i, d);
                    self.source_of(sentence).read(query, own, sum);
                }
            }
            let h_read = Mat::columns(&summary, k, 2 * h, 0, h);
            let to = rows_mut(&mut gates, 4 * h);
            weights.recurrent.product(to, Write::Over, h_read);
            if let Some(reader) = &weights.source {
                let h_read = Mat::columns(&read, k, d, 0, h);
                match reader.fusion {
                    Fusion::Shallow => {
                        let to = rows_mut(&mut gates, 4 * h);
                        reader.gate.product(to, Write::Add, h_read);
                    }
                    Fusion::Deep => {
                        let to = rows_mut(&mut reset, h);
                        reader.gate.product(to, Write::Over, h_read);
                    }
                }
            }
            for (i, (&sentence, part)) in order.iter().zip(&mut parts).take(k).enumerate() {
                let x = row(x, self.steps.row(sentence, t), width);
                let kept = row_mut(part.kept, t, keep);
                let read = row(&read, i, d);
                if layout.fusion == Some(Fusion::Deep) {
                    let reset = row_mut(&mut reset, i, h);
                    add_row(reset, &x[layout.reset()]);
                    let kept = &mut kept[layout.kept_reset()];
                    cell::gate(reset, &read[h..], kept, &mut added);
                }
                let gates = row_mut(&mut gates, i, 4 * h);
                add_row(gates, &x[layout.gates()]);
                let (next, summary) = (row_mut(part.states, t, 2 * h), row(&summary, i, 2 * h));
                let of_gates = &mut kept[layout.kept_gates()];
                cell::forward(gates, &summary[h..], &added, next, of_gates);
                row_mut(&mut state, i, 2 * h).copy_from_slice(next);
                kept[layout.kept_query()].copy_from_slice(row(&query, i, h));
                kept[layout.kept_summary()].copy_from_slice(summary);
                if layout.fusion.is_some() {
                    kept[layout.kept_source_query()].copy_from_slice(row(&source_query, i, h));
                    kept[layout.kept_read()].copy_from_slice(read);
                }
            }
            let outputs = Mat::columns(&state, k, 2 * h, 0, h);
            weights
                .key
                .product(rows_mut(&mut key, h), Write::Over, outputs);
            for (part, key) in parts.iter_mut().take(k).zip(key.chunks_exact(h)) {
                row_mut(part.keys, t, h).copy_from_slice(key);
            }
        }
    }
}

pub(super) fn rows_mut(data: &mut [f32], width: usize) -> RowsMut<'_> {
    RowsMut { data, width }
}
