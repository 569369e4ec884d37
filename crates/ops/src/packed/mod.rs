//! Weights that are read only by products and by look-ups of single rows, in the order in which products read
//! them. A model that is loaded to translate holds its matrices like this and not as tensors.
//!
//! Both kinds are divided into blocks of [`COLS`] outputs. In a product of few rows, as in decoding, threads
//! divide the blocks, so that each reads its part of the weights once. In a product of many rows they divide the
//! rows. A row of the result is the same bits in both, whatever the other rows are.

mod float;
mod int8;
mod int8_kernels;
mod product;
mod quantize;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use int8::Int8Matrix;
pub(crate) use product::{PackedMap, forward};
pub use quantize::quantize_row;

use candle_core::{Result, Tensor, bail};

use crate::cpu::view;
use crate::gemm::{ColumnBlocks, RowsMut};
use float::FloatMatrix;
use int8::QuantizedRows;

/// Outputs of a block; the last one may have fewer.
const COLS: usize = ColumnBlocks::COLS;

/// A packed matrix `[outputs, inputs]`. Cloning shares it.
#[derive(Clone)]
pub struct PackedWeight(Kind);

#[derive(Clone)]
enum Kind {
    Float(Arc<FloatMatrix>),
    Int8(Arc<Int8Matrix>),
}

impl PackedWeight {
    /// Packs the 32-bit floats of a tensor on the CPU.
    pub fn float(tensor: &Tensor) -> Result<Self> {
        let (outputs, inputs) = tensor.dims2()?;
        let matrix = FloatMatrix::pack(&view(tensor)?, outputs, inputs);
        Ok(Self(Kind::Float(Arc::new(matrix))))
    }

    /// Quantises the 32-bit floats of a tensor on the CPU.
    pub fn quantized(tensor: &Tensor) -> Result<Self> {
        let (outputs, inputs) = tensor.dims2()?;
        let (bytes, scales) = Int8Matrix::quantize(&view(tensor)?, outputs, inputs);
        if scales.iter().any(|scale| !scale.is_finite()) {
            bail!("a weight is not finite, so its matrix cannot be quantised");
        }
        let size = bytes.len();
        match Int8Matrix::new(Arc::new(bytes), 0..size, &scales, inputs) {
            Some(matrix) => Ok(Self::int8(matrix)),
            None => bail!("a matrix of {outputs} by {inputs} cannot be quantised"),
        }
    }

    /// A matrix of 8-bit integers.
    pub fn int8(matrix: Int8Matrix) -> Self {
        Self(Kind::Int8(Arc::new(matrix)))
    }

    /// Outputs and inputs.
    pub fn dims(&self) -> (usize, usize) {
        match &self.0 {
            Kind::Float(matrix) => matrix.dims(),
            Kind::Int8(matrix) => matrix.dims(),
        }
    }

    /// The weights of one output, as 32-bit floats: `row` has as many values as there are inputs.
    pub(crate) fn row(&self, output: usize, row: &mut [f32]) {
        match &self.0 {
            Kind::Float(matrix) => matrix.row(output, row),
            Kind::Int8(matrix) => matrix.row(output, row),
        }
    }

    /// y = x Wᵀ for the first `outputs` outputs of one block, on this thread.
    fn product(&self, x: &Input, block: usize, outputs: usize, y: RowsMut) {
        match &self.0 {
            Kind::Float(matrix) => matrix.product(x.values, block, outputs, y),
            Kind::Int8(matrix) => {
                let quantized = x.quantized.as_ref();
                let quantized = quantized.expect("the input of 8-bit products was quantised");
                matrix.product(quantized, block, outputs, y);
            }
        }
    }
}

/// The left operand of products: rows of floats, and the same in 8 bits if a product needs them.
struct Input<'a> {
    values: &'a [f32],
    rows: usize,
    quantized: Option<QuantizedRows>,
}
