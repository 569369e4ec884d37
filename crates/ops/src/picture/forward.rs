use rayon::prelude::*;

use super::pad::Padded;
use super::{PictureLayer, Sizes};
use crate::buffer::Buffer;
use crate::cpu::view;
use crate::gemm::{Mat, PackedMatrix, RowsMut, Write};
use crate::isa::kernel;
use crate::norm::norm_values;
use candle_core::Result;

/// What the backward pass needs beside the input: the normalised cells `[n, o]`, and 1/√(var + ε) of each.
pub(super) struct Kept {
    pub(super) normal: Buffer,
    pub(super) inverse: Buffer,
}

/// About as many cells are computed at once: their windows and results then stay in the second-level cache.
pub(super) const BAND: usize = 128;

/// The upper, middle and lower third of the weights, packed: `[3 · channels, outputs]` each.
pub(super) type Thirds = [PackedMatrix; 3];

/// Some lines of W * x, `[lines · (w + 2) - 2, outputs]`, in the rows of [`Padded::windows`].
pub(super) fn products(
    z: &mut [f32],
    padded: &Padded,
    (first, lines): (usize, usize),
    thirds: &Thirds,
    outputs: usize,
) {
    for (third, weight) in thirds.iter().enumerate() {
        let write = Write::first(third == 0);
        let dst = RowsMut {
            data: &mut *z,
            width: outputs,
        };
        weight.product(dst, write, padded.windows(first, lines, third));
    }
}

/// The first lines of bands, and how many lines each has: a multiple of `unit`, except in the last.
pub(super) fn bands(
    lines: usize,
    stride: usize,
    cells: usize,
    unit: usize,
) -> impl Iterator<Item = (usize, usize)> {
    let each = (cells / stride / unit).max(1) * unit;
    (0..lines)
        .step_by(each)
        .map(move |first| (first, each.min(lines - first)))
}

/// The layer over all maps of x, in parallel. In training, returns what the backward pass needs.
pub(super) fn forward(
    x: &[f32],
    sizes: Sizes,
    layer: &PictureLayer,
    y: &mut [f32],
    keep: bool,
) -> Result<Option<Kept>> {
    let Sizes { grid, i, o, .. } = sizes;
    let (weight, bias) = (view(layer.weight.value())?, view(layer.bias.value())?);
    let (gamma, beta) = (
        view(layer.norm.weight.value())?,
        view(layer.norm.bias.value())?,
    );
    let (bias, gamma, beta): (&[f32], &[f32], &[f32]) = (&bias, &gamma, &beta);
    let thirds: Thirds = std::array::from_fn(|third| {
        let third = Mat::columns(&weight, o, 9 * i, third * 3 * i, 3 * i);
        PackedMatrix::new(third.t(), 3 * i, o)
    });
    let (cells, pooled) = (grid.cells(), sizes.pooled().cells());
    let maps = x.par_chunks(cells * i).zip(y.par_chunks_mut(pooled * o));
    let one = |x: &[f32], y: &mut [f32], mut kept: Option<(&mut [f32], &mut [f32])>| {
        let mut padded = Padded::any(grid, i);
        padded.fill(x);
        let stride = padded.stride();
        let mut scratch = Buffer::any(grid.width * (o + 1));
        let mut z = Buffer::any(0);
        for (first, lines) in bands(grid.height, stride, BAND, sizes.pool) {
            let size = lines * stride * o;
            if z.len() < size {
                z = Buffer::any(size);
            }
            products(&mut z, &padded, (first, lines), &thirds, o);
            for line in 0..lines {
                let z = &mut z[line * stride * o..][..grid.width * o];
                let cells = (first + line) * grid.width..(first + line + 1) * grid.width;
                let (normal, inverse) = match &mut kept {
                    Some((normal, inverse)) => (
                        &mut normal[cells.start * o..cells.end * o],
                        &mut inverse[cells],
                    ),
                    None => scratch.split_at_mut(grid.width * o),
                };
                finish_line(z, bias, gamma, beta, normal, inverse);
            }
            let p = sizes.pool;
            for line in 0..lines / p {
                let width = sizes.pooled().width;
                let y = &mut y[(first / p + line) * width * o..][..width * o];
                pool_lines(&z[line * p * stride * o..], stride * o, p, o, y);
            }
        }
    };
    if !keep {
        maps.with_max_len(1).for_each(|(x, y)| one(x, y, None));
        return Ok(None);
    }
    let n = x.len() / i;
    let (mut normal, mut inverse) = (Buffer::any(n * o), Buffer::any(n));
    let kept = normal
        .par_chunks_mut(cells * o)
        .zip(inverse.par_chunks_mut(cells));
    let maps = maps.zip(kept).with_max_len(1);
    maps.for_each(|((x, y), kept)| one(x, y, Some(kept)));
    Ok(Some(Kept { normal, inverse }))
}

/// What is left of a value after normalisation: relu(γ ŝ + β). NaN stays NaN.
#[inline(always)]
pub(super) fn rectified(y: f32) -> f32 {
    if y < 0.0 { 0.0 } else { y }
}

kernel! {
    /// From cells of W * x to relu(LN(W * x + b)), in place; and the normalised cells and 1/√(var + ε) of each.
    fn finish_line(
        z: &mut [f32],
        bias: &[f32],
        gamma: &[f32],
        beta: &[f32],
        normal: &mut [f32],
        inverse: &mut [f32],
    ) {
        let o = bias.len();
        let cells = z.chunks_exact_mut(o).zip(normal.chunks_exact_mut(o));
        for ((z, normal), inverse) in cells.zip(inverse) {
            for ((normal, z), bias) in normal.iter_mut().zip(&*z).zip(bias) {
                *normal = z + bias;
            }
            *inverse = norm_values(normal, gamma, beta, z);
            z.iter_mut().for_each(|z| *z = rectified(*z));
        }
    }
}

kernel! {
    /// The largest of every p × p cells of p lines that begin `stride` values after each other. NaN is larger than
    /// any number.
    fn pool_lines(z: &[f32], stride: usize, p: usize, o: usize, y: &mut [f32]) {
        for (column, y) in y.chunks_exact_mut(o).enumerate() {
            y.copy_from_slice(&z[column * p * o..][..o]);
            for place in 1..p * p {
                let z = &z[place / p * stride + (column * p + place % p) * o..][..o];
                for (y, &z) in y.iter_mut().zip(z) {
                    *y = if z > *y || z.is_nan() { z } else { *y };
                }
            }
        }
    }
}
