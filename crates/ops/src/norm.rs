//! Residual connection, dropout and layer normalisation (Ba, Kiros and Hinton 2016).
//!
//! n rows, d wide:  add_norm(x, z) = γ (s - mean s) / √(var s + ε) + β  with  s = x + dropout(z).

use std::sync::Mutex;

use candle_core::{CpuStorage, CustomOp1, CustomOp2, D, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use crate::buffer::Buffer;
use crate::cpu::{self, slice, view};
use crate::gemm::Write;
use crate::isa::kernel;
use crate::pass::{Kernels, Pass};
use crate::profile::{self, Part};
use crate::random::{Dropout, RowDropout};
use crate::simd::add_scaled;
use crate::simd::{self, TASK_ROWS};
use crate::weight::{Weight, recorded};

/// The weights of one layer normalisation.
#[derive(Clone, Debug)]
pub struct LayerNorm {
    /// γ `[d]`
    pub weight: Weight,
    /// β `[d]`
    pub bias: Weight,
}

const EPSILON: f32 = 1e-5;

/// LN(x + dropout(z)): the end of every sub-layer in the paper.
pub fn add_norm(
    x: &Tensor,
    z: &Tensor,
    dropout: &RowDropout,
    norm: &LayerNorm,
    pass: &Pass,
) -> Result<Tensor> {
    match (pass.kernels, pass.trains()) {
        (Kernels::Composed, _) => composed(&(x + dropout.composed(z)?)?, norm),
        (Kernels::Fused, true) => in_graph(x, norm)?.apply_op2(z, NormOp::new(norm, dropout)),
        (Kernels::Fused, false) => x.apply_op2_no_bwd(z, &NormOp::new(norm, dropout)),
    }
}

/// LN(x).
pub fn norm(x: &Tensor, norm: &LayerNorm, pass: &Pass) -> Result<Tensor> {
    match (pass.kernels, pass.trains()) {
        (Kernels::Composed, _) => composed(x, norm),
        (Kernels::Fused, true) => {
            in_graph(x, norm)?.apply_op1(NormOp::new(norm, &RowDropout::NONE))
        }
        (Kernels::Fused, false) => x.apply_op1_no_bwd(&NormOp::new(norm, &RowDropout::NONE)),
    }
}

/// x + dropout(z): the residual connection with pre-norm.
pub fn add(x: &Tensor, z: &Tensor, dropout: &RowDropout, pass: &Pass) -> Result<Tensor> {
    match (pass.kernels, pass.trains()) {
        (Kernels::Composed, _) => x + dropout.composed(z)?,
        (Kernels::Fused, true) => x.apply_op2(z, Add(dropout.clone())),
        (Kernels::Fused, false) => x.apply_op2_no_bwd(z, &Add(dropout.clone())),
    }
}

fn in_graph(x: &Tensor, norm: &LayerNorm) -> Result<Tensor> {
    recorded(x, [&norm.weight, &norm.bias])
}

fn composed(s: &Tensor, norm: &LayerNorm) -> Result<Tensor> {
    let centred = s.broadcast_sub(&s.mean_keepdim(D::Minus1)?)?;
    let variance = centred.sqr()?.mean_keepdim(D::Minus1)?;
    let normal = centred.broadcast_div(&(variance + f64::from(EPSILON))?.sqrt()?)?;
    normal
        .broadcast_mul(norm.weight.value())?
        .broadcast_add(norm.bias.value())
}

struct NormOp {
    norm: LayerNorm,
    dropout: RowDropout,
    saved: Mutex<Option<Saved>>,
}

impl NormOp {
    fn new(norm: &LayerNorm, dropout: &RowDropout) -> Self {
        Self {
            norm: norm.clone(),
            dropout: dropout.clone(),
            saved: Mutex::new(None),
        }
    }

    fn forward(&self, x: &[f32], z: Option<&[f32]>) -> Result<Vec<f32>> {
        let mut y = vec![0.0; x.len()];
        let saved = forward(
            x,
            z.map(|values| Branch {
                values,
                dropout: &self.dropout,
            }),
            &self.norm,
            &mut y,
        )?;
        *self.saved.lock().unwrap_or_else(|e| e.into_inner()) = Some(saved);
        Ok(y)
    }

    fn backward(&self, dy: &[f32]) -> Result<Buffer> {
        let saved = self.saved.lock().unwrap_or_else(|e| e.into_inner());
        let Some(saved) = saved.as_ref() else {
            bail!("layer normalisation: the backward pass needs a forward pass in training")
        };
        let mut ds = Buffer::copy_of(dy);
        backward(saved, &self.norm, &mut ds)?;
        Ok(ds)
    }
}

/// Kept for the backward pass: the normalised rows `[n, d]` and 1/√(var + ε) `[n]`.
pub(crate) struct Saved {
    normal: Buffer,
    inverse: Buffer,
}

/// The output z of a sub-layer, and the dropout that it is added with.
#[derive(Clone, Copy)]
pub(crate) struct Branch<'a> {
    pub(crate) values: &'a [f32],
    pub(crate) dropout: &'a RowDropout,
}

/// y = LN(x + dropout(z)).
pub(crate) fn forward(
    x: &[f32],
    z: Option<Branch>,
    norm: &LayerNorm,
    y: &mut [f32],
) -> Result<Saved> {
    let _time = profile::time(Part::Norm);
    let weight: &[f32] = &view(norm.weight.value())?;
    let bias: &[f32] = &view(norm.bias.value())?;
    let d = weight.len();
    let (mut normal, mut inverse) = (Buffer::any(x.len()), Buffer::any(x.len() / d));
    let chunks = y
        .par_chunks_mut(TASK_ROWS * d)
        .zip(normal.par_chunks_mut(TASK_ROWS * d));
    let chunks = chunks.zip(inverse.par_chunks_mut(TASK_ROWS)).enumerate();
    chunks.for_each(|(i, ((y, normal), inverse))| {
        let rows = y.chunks_exact_mut(d).zip(normal.chunks_exact_mut(d));
        for (row, ((y, normal), inverse)) in rows.zip(inverse).enumerate() {
            let row = i * TASK_ROWS + row;
            let here = row * d..(row + 1) * d;
            let z = z.map(|Branch { values, dropout }| (&values[here.clone()], dropout.row(row)));
            *inverse = norm_row(&x[here], z, weight, bias, normal, y);
        }
    });
    Ok(Saved { normal, inverse })
}

/// Replaces dy by ds, the gradient of x + dropout(z), and accumulates those of γ and β.
pub(crate) fn backward(saved: &Saved, norm: &LayerNorm, dy: &mut [f32]) -> Result<()> {
    let _time = profile::time(Part::Norm);
    let Saved { normal, inverse } = saved;
    let weight: &[f32] = &view(norm.weight.value())?;
    let d = weight.len();
    if !norm.weight.is_trainable() && !norm.bias.is_trainable() {
        let chunks = dy.par_chunks_mut(TASK_ROWS * d).enumerate();
        chunks.for_each(|(i, dy)| {
            for (row, dy) in dy.chunks_exact_mut(d).enumerate() {
                let row = i * TASK_ROWS + row;
                let normal = &normal[row * d..(row + 1) * d];
                norm_row_backward(dy, normal, inverse[row], weight, &mut [], &mut []);
            }
        });
        return Ok(());
    }
    // A pair of column sums for γ and β per chunk of rows, added in the order of the rows.
    let mut sums = Buffer::zeros(dy.len().div_ceil(TASK_ROWS * d) * 2 * d);
    let chunks = dy
        .par_chunks_mut(TASK_ROWS * d)
        .zip(sums.par_chunks_mut(2 * d));
    chunks.enumerate().for_each(|(i, (dy, sums))| {
        let (dw, db) = sums.split_at_mut(d);
        for (row, dy) in dy.chunks_exact_mut(d).enumerate() {
            let row = i * TASK_ROWS + row;
            let normal = &normal[row * d..(row + 1) * d];
            norm_row_backward(dy, normal, inverse[row], weight, dw, db);
        }
    });
    let mut totals = Buffer::any(2 * d);
    simd::column_sums(&sums, 2 * d, &mut totals, Write::Over);
    let (dw, db) = totals.split_at(d);
    let LayerNorm { weight, bias } = norm;
    weight.accumulate(|g, write| add_scaled(g, write, 1.0, dw))?;
    bias.accumulate(|g, write| add_scaled(g, write, 1.0, db))
}

impl CustomOp1 for NormOp {
    fn name(&self) -> &'static str {
        "norm"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let y = self.forward(slice(x, layout)?, None)?;
        Ok((CpuStorage::F32(y), layout.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        let dx = self.backward(&view(dy)?)?;
        Ok(Some(cpu::like(dx.to_vec(), x)?))
    }
}

impl CustomOp2 for NormOp {
    fn name(&self) -> &'static str {
        "add-norm"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        z: &CpuStorage,
        z_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let y = self.forward(slice(x, x_layout)?, Some(slice(z, z_layout)?))?;
        Ok((CpuStorage::F32(y), x_layout.shape().clone()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        z: &Tensor,
        _: &Tensor,
        dy: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let dx = self.backward(&view(dy)?)?;
        let dz = dropped(&dx, z.dim(1)?, &self.dropout);
        let (dx, dz) = (cpu::like(dx.to_vec(), x)?, cpu::like(dz.to_vec(), z)?);
        Ok((Some(dx), Some(dz)))
    }
}

kernel! {
    /// One row; returns 1/√(var + ε).
    fn norm_row(
        x: &[f32],
        z: Option<(&[f32], Dropout)>,
        weight: &[f32],
        bias: &[f32],
        normal: &mut [f32],
        y: &mut [f32],
    ) -> f32 {
        normal.copy_from_slice(x);
        if let Some((values, dropout)) = z {
            add_dropped(normal, values, dropout);
        }
        norm_values(normal, weight, bias, y)
    }
}

/// Normalises a row in place, for a kernel; returns 1/√(var + ε).
#[inline(always)]
pub(crate) fn norm_values(normal: &mut [f32], weight: &[f32], bias: &[f32], y: &mut [f32]) -> f32 {
    let d = normal.len() as f32;
    let mean = simd::sum(normal) / d;
    normal.iter_mut().for_each(|s| *s -= mean);
    let inverse = 1.0 / (simd::dot(normal, normal) / d + EPSILON).sqrt();
    let parameters = weight.iter().zip(bias);
    for ((normal, y), (weight, bias)) in normal.iter_mut().zip(y).zip(parameters) {
        *normal *= inverse;
        *y = *normal * weight + bias;
    }
    inverse
}

kernel! {
    /// ds = (g - mean g - ŝ · mean(g ŝ)) / √(var + ε)  with  g = γ dy, ŝ the normalised row; in place.
    /// Adds to dw and db unless they are empty.
    fn norm_row_backward(
        dy: &mut [f32],
        normal: &[f32],
        inverse: f32,
        weight: &[f32],
        dw: &mut [f32],
        db: &mut [f32],
    ) {
        norm_values_backward(dy, normal, inverse, weight, dw, db);
    }
}

#[inline(always)]
pub(crate) fn norm_values_backward(
    dy: &mut [f32],
    normal: &[f32],
    inverse: f32,
    weight: &[f32],
    dw: &mut [f32],
    db: &mut [f32],
) {
    let d = dy.len();
    let (normal, weight) = (&normal[..d], &weight[..d]);
    if dw.is_empty() {
        for j in 0..d {
            dy[j] *= weight[j];
        }
    } else {
        let (dw, db) = (&mut dw[..d], &mut db[..d]);
        for j in 0..d {
            db[j] += dy[j];
            dw[j] += dy[j] * normal[j];
            dy[j] *= weight[j];
        }
    }
    let mean = simd::sum(dy) / d as f32;
    let along = simd::dot(dy, normal) / d as f32;
    for j in 0..d {
        dy[j] = inverse * (dy[j] - mean - normal[j] * along);
    }
}

#[inline(always)]
fn add_dropped(x: &mut [f32], z: &[f32], dropout: Dropout) {
    if dropout.is_none() {
        x.iter_mut().zip(z).for_each(|(x, z)| *x += z);
    } else {
        let values = x.iter_mut().zip(z).enumerate();
        values.for_each(|(j, (x, z))| *x += z * dropout.factor(j as u32));
    }
}

kernel! {
    fn add_dropped_row(x: &mut [f32], z: &[f32], dropout: Dropout) {
        add_dropped(x, z, dropout);
    }
}

/// x += dropout(z), rows in parallel.
pub(crate) fn add_rows(x: &mut [f32], z: &[f32], d: usize, dropout: &RowDropout) {
    let _time = profile::time(Part::Norm);
    let chunks = x
        .par_chunks_mut(TASK_ROWS * d)
        .zip(z.par_chunks(TASK_ROWS * d));
    chunks.enumerate().for_each(|(i, (x, z))| {
        for (row, (x, z)) in x.chunks_exact_mut(d).zip(z.chunks_exact(d)).enumerate() {
            add_dropped_row(x, z, dropout.row(i * TASK_ROWS + row));
        }
    });
}

/// dropout(x).
pub(crate) fn dropped(x: &[f32], d: usize, dropout: &RowDropout) -> Buffer {
    let _time = profile::time(Part::Norm);
    let mut y = Buffer::any(x.len());
    let chunks = y
        .par_chunks_mut(TASK_ROWS * d)
        .zip(x.par_chunks(TASK_ROWS * d));
    chunks.enumerate().for_each(|(i, (y, x))| {
        for (row, (y, x)) in y.chunks_exact_mut(d).zip(x.chunks_exact(d)).enumerate() {
            dropped_row(y, x, dropout.row(i * TASK_ROWS + row));
        }
    });
    y
}

kernel! {
    fn dropped_row(y: &mut [f32], x: &[f32], dropout: Dropout) {
        let values = y.iter_mut().zip(x).enumerate();
        values.for_each(|(j, (y, x))| *y = x * dropout.factor(j as u32));
    }
}

struct Add(RowDropout);

impl CustomOp2 for Add {
    fn name(&self) -> &'static str {
        "add"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        z: &CpuStorage,
        z_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (_, d) = x_layout.shape().dims2()?;
        let mut y = slice(x, x_layout)?.to_vec();
        add_rows(&mut y, slice(z, z_layout)?, d, &self.0);
        Ok((CpuStorage::F32(y), x_layout.shape().clone()))
    }

    fn bwd(
        &self,
        _: &Tensor,
        z: &Tensor,
        _: &Tensor,
        dy: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let dz = dropped(&view(dy)?, z.dim(1)?, &self.0);
        Ok((Some(dy.clone()), Some(cpu::like(dz.to_vec(), z)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, dropout, weight};

    const SHAPES: [(usize, usize); 5] = [(1, 1), (1, 9), (5, 24), (64, 17), (131, 40)];

    #[test]
    fn fused_equals_composed_on_odd_shapes_with_and_without_dropout() {
        for (n, d) in SHAPES {
            let gamma = LayerNorm {
                weight: weight("norm.weight", d),
                bias: weight("norm.bias", d),
            };
            let params = [gamma.weight.clone(), gamma.bias.clone()];
            let one = Case::new(&params).input((n, d));
            one.check(|x, pass| norm(&x[0], &gamma, pass));
            for rate in [0.0, 0.4] {
                let two = Case::new(&params).input((n, d)).input((n, d));
                two.check(|x, pass| add_norm(&x[0], &x[1], &dropout(n, rate, pass), &gamma, pass));
                let none = Case::new(&[]).input((n, d)).input((n, d));
                none.check(|x, pass| add(&x[0], &x[1], &dropout(n, rate, pass), pass));
            }
        }
    }
}
