use std::ops::Range;
use std::sync::Arc;

use super::int8_kernels::{self, Block};
use super::{COLS, quantize_row};
use crate::gemm::RowsMut;
use rayon::prelude::*;

/// Outputs of a panel.
pub(super) const PANEL: usize = 32;
/// Consecutive inputs of an output that lie together: what one instruction multiplies and adds.
pub(super) const GROUP: usize = 4;

/// Bytes that others own: held, or mapped from a file.
type Bytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A matrix `[outputs, inputs]` of 8-bit integers with a scale for each output: w = q / scale.
///
/// Its bytes are panels of 32 outputs. A panel has, for every 4 inputs, those of its first output, of its second,
/// and so on. Outputs and inputs that fill the last panel and group are zero. This order does not depend on the
/// CPU, so that a file in it can be mapped and used as it lies.
pub struct Int8Matrix {
    bytes: Bytes,
    range: Range<usize>,
    /// What turns integers into weights: 1 / scale, one for each output, and zeros up to whole panels.
    steps: Vec<f32>,
    outputs: usize,
    inputs: usize,
}

impl Int8Matrix {
    /// The number of bytes of a matrix.
    pub fn size(outputs: usize, inputs: usize) -> usize {
        outputs.next_multiple_of(PANEL) * inputs.next_multiple_of(GROUP)
    }

    /// Quantises a matrix. Returns its bytes and the scale of each output.
    pub fn quantize(values: &[f32], outputs: usize, inputs: usize) -> (Vec<u8>, Vec<f32>) {
        let depth = inputs.next_multiple_of(GROUP);
        let mut bytes = vec![0; Self::size(outputs, inputs)];
        let mut scales = vec![0.0; outputs];
        let panels = bytes.par_chunks_mut(PANEL * depth);
        let panels = panels.zip(scales.par_chunks_mut(PANEL)).enumerate();
        panels.for_each(|(panel, (bytes, scales))| {
            let mut row = vec![0; inputs];
            for (column, scale) in scales.iter_mut().enumerate() {
                let values = &values[(panel * PANEL + column) * inputs..][..inputs];
                *scale = quantize_row(values, &mut row);
                for (group, values) in row.chunks(GROUP).enumerate() {
                    let to = &mut bytes[(group * PANEL + column) * GROUP..];
                    let pairs = to.iter_mut().zip(values);
                    pairs.for_each(|(to, from)| *to = from.cast_unsigned());
                }
            }
        });
        (bytes, scales)
    }

    /// A matrix of quantised bytes, which are `range` of what is given. `None` if they are not as many as the
    /// matrix needs, or if a scale is not a positive number.
    pub fn new(
        bytes: Arc<dyn AsRef<[u8]> + Send + Sync>,
        range: Range<usize>,
        scales: &[f32],
        inputs: usize,
    ) -> Option<Self> {
        let outputs = scales.len();
        let usable = |scale: &f32| scale.is_finite() && *scale > 0.0;
        if !scales.iter().all(usable) {
            return None;
        }
        let depth = inputs.checked_next_multiple_of(GROUP)?;
        let size = outputs
            .checked_next_multiple_of(PANEL)?
            .checked_mul(depth)?;
        let fits = range.len() == size && range.end <= bytes.as_ref().as_ref().len();
        let mut steps: Vec<f32> = scales.iter().map(|scale| 1.0 / scale).collect();
        steps.resize(outputs.next_multiple_of(PANEL), 0.0);
        fits.then_some(Self {
            bytes,
            range,
            steps,
            outputs,
            inputs,
        })
    }

    pub(super) fn dims(&self) -> (usize, usize) {
        (self.outputs, self.inputs)
    }

    /// The weights `[outputs, inputs]` as floats.
    pub fn dequantize(&self) -> Vec<f32> {
        let mut values = vec![0.0; self.outputs * self.inputs];
        let rows = values.par_chunks_mut(self.inputs.max(1)).enumerate();
        rows.for_each(|(output, row)| self.row(output, row));
        values
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes.as_ref().as_ref()[self.range.clone()]
    }

    /// The weights of one output.
    pub(super) fn row(&self, output: usize, row: &mut [f32]) {
        let depth = self.inputs.next_multiple_of(GROUP);
        let panel = &self.bytes()[output / PANEL * PANEL * depth..][..PANEL * depth];
        let step = self.steps[output];
        for (group, values) in row.chunks_mut(GROUP).enumerate() {
            let from = &panel[(group * PANEL + output % PANEL) * GROUP..];
            let pairs = values.iter_mut().zip(from);
            pairs.for_each(|(to, from)| *to = f32::from(from.cast_signed()) * step);
        }
    }

    /// x Wᵀ for the first outputs of one block, on this thread.
    pub(super) fn product(&self, x: &QuantizedRows, block: usize, outputs: usize, y: RowsMut) {
        let depth = self.inputs.next_multiple_of(GROUP);
        assert_eq!(x.depth, depth, "inputs of a product");
        let first = block * COLS;
        let panels = outputs.div_ceil(PANEL) * PANEL;
        int8_kernels::rows(
            y,
            x,
            Block {
                panels: &self.bytes()[first * depth..][..panels * depth],
                steps: &self.steps[first..][..panels],
                outputs,
            },
        );
    }
}

/// Rows of activations in 8 bits.
pub(super) struct QuantizedRows {
    /// `[n, depth]`, with zeros after the inputs of each row.
    pub(super) values: Vec<i8>,
    /// Bytes of a row: the inputs, filled up to whole groups.
    pub(super) depth: usize,
    /// 1 / scale of each row.
    pub(super) steps: Vec<f32>,
    /// The sum of each row.
    pub(super) sums: Vec<i32>,
}

impl QuantizedRows {
    pub(super) fn new(values: &[f32], inputs: usize) -> Self {
        let n = values.len() / inputs;
        let depth = inputs.next_multiple_of(GROUP);
        let mut quantized = vec![0; n * depth];
        let (mut steps, mut sums) = (vec![0.0; n], vec![0; n]);
        let rows = values.chunks_exact(inputs);
        let rows = rows.zip(quantized.chunks_exact_mut(depth.max(1)));
        for (i, (row, quantized)) in rows.enumerate() {
            steps[i] = 1.0 / quantize_row(row, &mut quantized[..inputs]);
            sums[i] = quantized.iter().map(|&q| i32::from(q)).sum();
        }
        Self {
            values: quantized,
            depth,
            steps,
            sums,
        }
    }

    pub(super) fn row(&self, row: usize) -> &[i8] {
        &self.values[row * self.depth..][..self.depth]
    }

    pub(super) fn count(&self) -> usize {
        self.steps.len()
    }
}
