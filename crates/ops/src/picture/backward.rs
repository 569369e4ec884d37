use candle_core::Result;
use rayon::prelude::*;

use super::forward::{BAND, Kept, Thirds, bands, products, rectified};
use super::pad::Padded;
use super::{PictureLayer, Sizes};
use crate::buffer::Buffer;
use crate::cpu::view;
use crate::gemm::{Mat, PackedMatrix, RowsMut, Write};
use crate::isa::kernel;
use crate::norm::norm_values_backward;
use crate::simd;

/// The gradient of the outputs of all maps, to that of their inputs (unless it is empty) and of the weights.
///
/// Maps are divided into groups by their number and the size of the weights alone. Each group sums its gradients of
/// the weights, and these sums are added in order, so the bits do not depend on the number of threads.
pub(super) fn backward(
    x: &[f32],
    sizes: Sizes,
    layer: &PictureLayer,
    kept: &Kept,
    dy: &[f32],
    dx: &mut [f32],
) -> Result<()> {
    let Sizes { grid, i, o, .. } = sizes;
    let (cells, pooled) = (grid.cells(), sizes.pooled().cells());
    let weight = view(layer.weight.value())?;
    let (gamma, beta) = (
        view(layer.norm.weight.value())?,
        view(layer.norm.bias.value())?,
    );
    let (gamma, beta): (&[f32], &[f32]) = (&gamma, &beta);
    let flipped = (!dx.is_empty()).then(|| flipped(&weight, i, o));
    let count = x.len() / (cells * i);
    // dW in the order `[3, 3, i, o]`, db, dγ, dβ.
    let size = 9 * i * o + 3 * o;
    let each = count.div_ceil((MOST_SUMS / size).clamp(4, 16));
    let mut sums = Buffer::zeros(count.div_ceil(each.max(1)) * size);
    let group = |group: usize, sums: &mut [f32], dx: &mut [f32]| {
        let mut input = Padded::any(grid, i);
        let mut gradient = Padded::any(grid, o);
        let mut scratch = Scratch::new(sizes);
        let (dw, vectors) = sums.split_at_mut(9 * i * o);
        for map in group * each..count.min((group + 1) * each) {
            let normal = &kept.normal[map * cells * o..][..cells * o];
            let inverse = &kept.inverse[map * cells..][..cells];
            let dy = &dy[map * pooled * o..][..pooled * o];
            let parameters = (gamma, beta);
            before_norm(
                sizes,
                (normal, inverse),
                parameters,
                dy,
                vectors,
                &mut gradient,
                &mut scratch,
            );
            input.fill(&x[map * cells * i..][..cells * i]);
            weight_gradient(&input, &gradient, sizes, dw);
            if let Some(flipped) = &flipped {
                let place = (map - group * each) * cells * i;
                let dx = &mut dx[place..][..cells * i];
                input_gradient(&gradient, flipped, sizes, &mut scratch.z, dx);
            }
        }
    };
    let groups = sums.par_chunks_mut(size).enumerate().with_max_len(1);
    if dx.is_empty() {
        groups.for_each(|(number, sums)| group(number, sums, &mut []));
    } else {
        let parts = groups.zip(dx.par_chunks_mut(each * cells * i));
        parts.for_each(|((number, sums), dx)| group(number, sums, dx));
    }
    accumulate(&sums, size, sizes, layer)
}

/// The most values of all sums together, unless one group has more.
const MOST_SUMS: usize = 1 << 22;

/// Cells whose part of the gradient of the weights is one product.
const DEPTH: usize = 512;

struct Scratch {
    z: Buffer,
    /// The largest value of a square in each channel, and where it is.
    highest: Vec<f32>,
    place: Vec<u32>,
}

impl Scratch {
    fn new(sizes: Sizes) -> Self {
        let stride = sizes.grid.width + 2;
        Self {
            z: Buffer::any((BAND / stride).max(1) * stride * sizes.i),
            highest: vec![0.0; sizes.o],
            place: vec![0; sizes.o],
        }
    }
}

/// The weights of the convolution of the gradient: `[(3, o), i]` for each line, with lines and columns reversed.
fn flipped(weight: &[f32], i: usize, o: usize) -> Thirds {
    let mut lines = Buffer::any(9 * i * o);
    for (place, to) in lines.chunks_exact_mut(i).enumerate() {
        let (place, output) = (place / o, place % o);
        to.copy_from_slice(&weight[(output * 9 + 8 - place) * i..][..i]);
    }
    std::array::from_fn(|third| {
        let third = &lines[third * 3 * o * i..][..3 * o * i];
        PackedMatrix::new(Mat::new(third, 3 * o, i), 3 * o, i)
    })
}

/// The gradient of W * x + b, and those of b, γ and β.
fn before_norm(
    sizes: Sizes,
    (normal, inverse): (&[f32], &[f32]),
    (gamma, beta): (&[f32], &[f32]),
    dy: &[f32],
    vectors: &mut [f32],
    gradient: &mut Padded,
    scratch: &mut Scratch,
) {
    let Sizes { grid, o, pool, .. } = sizes;
    let to = sizes.pooled();
    let width = grid.width * o;
    for line in 0..grid.height {
        let normal = &normal[line * width..][..width];
        let inverse = &inverse[line * grid.width..][..grid.width];
        let dz = gradient.line(line);
        dz[to.width * pool * o..].fill(0.0);
        if line / pool >= to.height {
            dz.fill(0.0);
            continue;
        }
        if pool == 1 {
            let dy = &dy[line * width..][..width];
            rectified_backward(normal, gamma, beta, dy, dz);
        }
        if pool == 1 {
            norm_line_backward(dz, normal, inverse, gamma, vectors);
        }
    }
    if pool == 1 {
        return;
    }
    for line in 0..to.height {
        let normal = &normal[line * pool * width..][..pool * width];
        let dy = &dy[line * to.width * o..][..to.width * o];
        for column in 0..to.width {
            let first = column * pool * o;
            let (highest, place) = (&mut scratch.highest[..], &mut scratch.place[..]);
            let square = Square {
                normal: &normal[first..],
                stride: width,
                side: pool,
            };
            square.highest(gamma, beta, highest, place);
            for down in 0..pool {
                let dz = &mut gradient.line(line * pool + down)[first..][..pool * o];
                let here = (down * pool) as u32;
                let dy = &dy[column * o..][..o];
                unpool(dy, highest, place, here, dz);
            }
        }
        for down in 0..pool {
            let line = line * pool + down;
            let normal = &normal[down * width..][..to.width * pool * o];
            let inverse = &inverse[line * grid.width..][..to.width * pool];
            let dz = &mut gradient.line(line)[..to.width * pool * o];
            norm_line_backward(dz, normal, inverse, gamma, vectors);
        }
    }
}

/// The normalised cells that were pooled to one.
struct Square<'a> {
    normal: &'a [f32],
    /// Values from line to line.
    stride: usize,
    side: usize,
}

impl Square<'_> {
    /// The largest value of each channel, and the first place where it is.
    fn highest(&self, gamma: &[f32], beta: &[f32], highest: &mut [f32], place: &mut [u32]) {
        find_highest(
            self.normal,
            self.stride,
            self.side,
            gamma,
            beta,
            highest,
            place,
        );
    }
}

kernel! {
    fn find_highest(
        normal: &[f32],
        stride: usize,
        side: usize,
        gamma: &[f32],
        beta: &[f32],
        highest: &mut [f32],
        place: &mut [u32],
    ) {
        let o = gamma.len();
        let (beta, highest, place) = (&beta[..o], &mut highest[..o], &mut place[..o]);
        for here in 0..side * side {
            let normal = &normal[here / side * stride + here % side * o..][..o];
            for j in 0..o {
                let value = rectified(normal[j] * gamma[j] + beta[j]);
                let higher = here == 0 || value > highest[j];
                highest[j] = if higher { value } else { highest[j] };
                place[j] = if higher { here as u32 } else { place[j] };
            }
        }
    }
}

kernel! {
    /// The gradient of cells side by side, the first of which is at place `first`: that of the largest cell goes
    /// on unless relu made it zero.
    fn unpool(dy: &[f32], highest: &[f32], place: &[u32], first: u32, dz: &mut [f32]) {
        let o = dy.len();
        let (highest, place) = (&highest[..o], &place[..o]);
        for (right, dz) in dz.chunks_exact_mut(o).enumerate() {
            let here = first + right as u32;
            for j in 0..o {
                let taken = place[j] == here && highest[j] > 0.0;
                dz[j] = if taken { dy[j] } else { 0.0 };
            }
        }
    }
}

kernel! {
    fn rectified_backward(
        normal: &[f32],
        gamma: &[f32],
        beta: &[f32],
        dy: &[f32],
        dz: &mut [f32],
    ) {
        let o = gamma.len();
        let beta = &beta[..o];
        let cells = normal.chunks_exact(o).zip(dy.chunks_exact(o));
        for ((normal, dy), dz) in cells.zip(dz.chunks_exact_mut(o)) {
            for j in 0..o {
                let y = normal[j] * gamma[j] + beta[j];
                dz[j] = if y > 0.0 { dy[j] } else { 0.0 };
            }
        }
    }
}

kernel! {
    /// Cells of the gradient of LN's output to that of its input, in place. Adds to the gradients of b, γ and β.
    fn norm_line_backward(
        dz: &mut [f32],
        normal: &[f32],
        inverse: &[f32],
        gamma: &[f32],
        vectors: &mut [f32],
    ) {
        let o = gamma.len();
        let (db, of_norm) = vectors.split_at_mut(o);
        let (dgamma, dbeta) = of_norm.split_at_mut(o);
        let cells = dz.chunks_exact_mut(o).zip(normal.chunks_exact(o));
        for ((dz, normal), inverse) in cells.zip(inverse) {
            norm_values_backward(dz, normal, *inverse, gamma, dgamma, dbeta);
            for (db, dz) in db.iter_mut().zip(dz) {
                *db += *dz;
            }
        }
    }
}

/// dW += windowsᵀ · gradient, for one map.
fn weight_gradient(input: &Padded, gradient: &Padded, sizes: Sizes, dw: &mut [f32]) {
    let Sizes { grid, i, o, .. } = sizes;
    for (first, lines) in bands(grid.height, input.stride(), DEPTH, 1) {
        let rows = lines * input.stride() - 2;
        let cells = PackedMatrix::new(gradient.cells(first, lines), rows, o);
        for (third, dw) in dw.chunks_exact_mut(3 * i * o).enumerate() {
            let dst = RowsMut { data: dw, width: o };
            let windows = input.windows(first, lines, third);
            cells.product(dst, Write::Add, windows.t());
        }
    }
}

/// The gradient of one map.
fn input_gradient(
    gradient: &Padded,
    flipped: &Thirds,
    sizes: Sizes,
    z: &mut [f32],
    dx: &mut [f32],
) {
    let (grid, i) = (sizes.grid, sizes.i);
    let stride = gradient.stride();
    for (first, lines) in bands(grid.height, stride, BAND, 1) {
        products(z, gradient, (first, lines), flipped, i);
        let width = grid.width * i;
        let dx = dx[first * width..].chunks_exact_mut(width).take(lines);
        for (dx, z) in dx.zip(z.chunks(stride * i)) {
            dx.copy_from_slice(&z[..width]);
        }
    }
}

/// Adds the sums of all groups to the gradients of the weights.
fn accumulate(sums: &[f32], size: usize, sizes: Sizes, layer: &PictureLayer) -> Result<()> {
    let Sizes { i, o, .. } = sizes;
    let mut totals = Buffer::any(size);
    simd::column_sums(sums, size, &mut totals, Write::Over);
    let (dw, vectors) = totals.split_at(9 * i * o);
    layer.weight.accumulate(|to, write| {
        for (output, to) in to.chunks_exact_mut(9 * i).enumerate() {
            for (to, from) in to.iter_mut().zip(dw.chunks_exact(o)) {
                *to = if write == Write::Over { 0.0 } else { *to } + from[output];
            }
        }
    })?;
    let norm = &layer.norm;
    let vectors = vectors.chunks_exact(o);
    for (weight, sums) in [&layer.bias, &norm.weight, &norm.bias]
        .into_iter()
        .zip(vectors)
    {
        weight.accumulate(|to, write| simd::add_scaled(to, write, 1.0, sums))?;
    }
    Ok(())
}
