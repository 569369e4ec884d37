//! Residual connection, dropout and layer normalisation (Ba, Kiros and Hinton 2016).
//!
//! n rows, d wide:  add_norm(x, z) = γ (s - mean s) / √(var s + ε) + β  with  s = x + dropout(z).

use std::sync::Mutex;

use candle_core::{CpuStorage, CustomOp1, CustomOp2, D, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use crate::cpu::{self, slice, view};
use crate::gemm::Write;
use crate::pass::{Pass, Path};
use crate::random::Dropout;
use crate::simd::{self, ROWS};
use crate::{Param, simd::add_scaled};

/// The parameters of one layer normalisation.
#[derive(Clone, Debug)]
pub struct Norm {
    /// γ `[d]`
    pub weight: Param,
    /// β `[d]`
    pub bias: Param,
}

const EPSILON: f32 = 1e-5;

/// LN(x + dropout(z)): how the paper ends every sub-layer.
pub fn add_norm(
    x: &Tensor,
    z: &Tensor,
    dropout: Dropout,
    norm: &Norm,
    pass: &Pass,
) -> Result<Tensor> {
    match (pass.path, pass.trains()) {
        (Path::Composed, _) => composed(&(x + dropout.composed(z)?)?, norm),
        (Path::Fused, true) => x.apply_op2(z, Fused::new(norm, dropout)),
        (Path::Fused, false) => x.apply_op2_no_bwd(z, &Fused::new(norm, dropout)),
    }
}

/// LN(x).
pub fn norm(x: &Tensor, norm: &Norm, pass: &Pass) -> Result<Tensor> {
    match (pass.path, pass.trains()) {
        (Path::Composed, _) => composed(x, norm),
        (Path::Fused, true) => x.apply_op1(Fused::new(norm, Dropout::NONE)),
        (Path::Fused, false) => x.apply_op1_no_bwd(&Fused::new(norm, Dropout::NONE)),
    }
}

/// x + dropout(z): the residual connection of the pre-norm order.
pub fn add(x: &Tensor, z: &Tensor, dropout: Dropout, pass: &Pass) -> Result<Tensor> {
    match (pass.path, pass.trains()) {
        (Path::Composed, _) => x + dropout.composed(z)?,
        (Path::Fused, true) => x.apply_op2(z, Add(dropout)),
        (Path::Fused, false) => x.apply_op2_no_bwd(z, &Add(dropout)),
    }
}

fn composed(s: &Tensor, norm: &Norm) -> Result<Tensor> {
    let centred = s.broadcast_sub(&s.mean_keepdim(D::Minus1)?)?;
    let variance = centred.sqr()?.mean_keepdim(D::Minus1)?;
    let normal = centred.broadcast_div(&(variance + f64::from(EPSILON))?.sqrt()?)?;
    normal
        .broadcast_mul(norm.weight.value())?
        .broadcast_add(norm.bias.value())
}

struct Fused {
    norm: Norm,
    dropout: Dropout,
    saved: Mutex<Option<Saved>>,
}

/// What backward needs: the normalised rows `[n, d]` and 1/√(var + ε) `[n]`.
struct Saved {
    normal: Vec<f32>,
    inverse: Vec<f32>,
}

impl Fused {
    fn new(norm: &Norm, dropout: Dropout) -> Self {
        Self {
            norm: norm.clone(),
            dropout,
            saved: Mutex::new(None),
        }
    }

    fn forward(&self, x: &[f32], z: Option<&[f32]>) -> Result<Vec<f32>> {
        let weight: &[f32] = &view(self.norm.weight.value())?;
        let bias: &[f32] = &view(self.norm.bias.value())?;
        let d = weight.len();
        let mut y = vec![0.0; x.len()];
        let mut normal = vec![0.0; x.len()];
        let mut inverse = vec![0.0; x.len() / d];
        let chunks = y
            .par_chunks_mut(ROWS * d)
            .zip(normal.par_chunks_mut(ROWS * d));
        let chunks = chunks.zip(inverse.par_chunks_mut(ROWS)).enumerate();
        chunks.for_each(|(i, ((y, normal), inverse))| {
            let rows = y.chunks_exact_mut(d).zip(normal.chunks_exact_mut(d));
            for (row, ((y, normal), inverse)) in rows.zip(inverse).enumerate() {
                let row = i * ROWS + row;
                let here = row * d..(row + 1) * d;
                let z = z.map(|z| (&z[here.clone()], self.dropout.row(row)));
                *inverse = norm_row(&x[here], z, (weight, bias), normal, y);
            }
        });
        let saved = Saved { normal, inverse };
        *self.saved.lock().unwrap_or_else(|e| e.into_inner()) = Some(saved);
        Ok(y)
    }

    /// Adds to the gradients of γ and β; returns those of x and, where there is one, z.
    fn backward(&self, dy: &[f32], with_z: bool) -> Result<(Vec<f32>, Option<Vec<f32>>)> {
        let saved = self.saved.lock().unwrap_or_else(|e| e.into_inner());
        let Some(Saved { normal, inverse }) = saved.as_ref() else {
            bail!("layer normalisation went backward before forward")
        };
        let weight: &[f32] = &view(self.norm.weight.value())?;
        let d = weight.len();
        let mut dx = vec![0.0; dy.len()];
        // Column sums for γ and β, a pair for every chunk of rows, added up in the rows' order.
        let mut sums = vec![0.0; dy.len().div_ceil(ROWS * d) * 2 * d];
        let chunks = dx.par_chunks_mut(ROWS * d).zip(sums.par_chunks_mut(2 * d));
        chunks.enumerate().for_each(|(i, (dx, sums))| {
            let (dw, db) = sums.split_at_mut(d);
            for (row, dx) in dx.chunks_exact_mut(d).enumerate() {
                let row = i * ROWS + row;
                let here = row * d..(row + 1) * d;
                let (dy, normal) = (&dy[here.clone()], &normal[here]);
                norm_row_backward(dy, normal, inverse[row], weight, dx, dw, db);
            }
        });
        let mut totals = vec![0.0; 2 * d];
        simd::column_sums(&sums, 2 * d, &mut totals, Write::Over);
        let (dw, db) = totals.split_at(d);
        let Norm { weight, bias } = &self.norm;
        weight.accumulate(|g, write| add_scaled(g, write, 1.0, dw))?;
        bias.accumulate(|g, write| add_scaled(g, write, 1.0, db))?;
        let dz = with_z.then(|| dropped(&dx, d, self.dropout));
        Ok((dx, dz))
    }
}

impl CustomOp1 for Fused {
    fn name(&self) -> &'static str {
        "norm"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let y = self.forward(slice(x, layout)?, None)?;
        Ok((CpuStorage::F32(y), layout.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        let (dx, _) = self.backward(&view(dy)?, false)?;
        Ok(Some(cpu::like(dx, x)?))
    }
}

impl CustomOp2 for Fused {
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
        let (dx, dz) = self.backward(&view(dy)?, true)?;
        let dz = dz.map(|dz| cpu::like(dz, z)).transpose()?;
        Ok((Some(cpu::like(dx, x)?), dz))
    }
}

/// One row; returns 1/√(var + ε).
#[multiversion::multiversion(targets("x86_64+avx2+fma"))]
fn norm_row(
    x: &[f32],
    z: Option<(&[f32], Dropout)>,
    (weight, bias): (&[f32], &[f32]),
    normal: &mut [f32],
    y: &mut [f32],
) -> f32 {
    let d = x.len() as f32;
    normal.copy_from_slice(x);
    if let Some((z, dropout)) = z {
        add_dropped(normal, z, dropout);
    }
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

/// ds = (g - mean g - ŝ · mean(g ŝ)) / √(var + ε)  with  g = γ dy, ŝ the normalised row.
#[multiversion::multiversion(targets("x86_64+avx2+fma"))]
fn norm_row_backward(
    dy: &[f32],
    normal: &[f32],
    inverse: f32,
    weight: &[f32],
    dx: &mut [f32],
    dw: &mut [f32],
    db: &mut [f32],
) {
    let d = dy.len();
    let (normal, weight, dx) = (&normal[..d], &weight[..d], &mut dx[..d]);
    let (dw, db) = (&mut dw[..d], &mut db[..d]);
    for j in 0..d {
        db[j] += dy[j];
        dw[j] += dy[j] * normal[j];
        dx[j] = dy[j] * weight[j];
    }
    let mean = simd::sum(dx) / d as f32;
    let along = simd::dot(dx, normal) / d as f32;
    for j in 0..d {
        dx[j] = inverse * (dx[j] - mean - normal[j] * along);
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

#[multiversion::multiversion(targets("x86_64+avx2+fma"))]
fn add_dropped_row(x: &mut [f32], z: &[f32], dropout: Dropout) {
    add_dropped(x, z, dropout);
}

/// x += dropout(z), rows in parallel.
fn add_rows(x: &mut [f32], z: &[f32], d: usize, dropout: Dropout) {
    let chunks = x.par_chunks_mut(ROWS * d).zip(z.par_chunks(ROWS * d));
    chunks.enumerate().for_each(|(i, (x, z))| {
        for (row, (x, z)) in x.chunks_exact_mut(d).zip(z.chunks_exact(d)).enumerate() {
            add_dropped_row(x, z, dropout.row(i * ROWS + row));
        }
    });
}

fn dropped(x: &[f32], d: usize, dropout: Dropout) -> Vec<f32> {
    if dropout.is_none() {
        return x.to_vec();
    }
    let mut y = vec![0.0; x.len()];
    add_rows(&mut y, x, d, dropout);
    y
}

struct Add(Dropout);

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
        add_rows(&mut y, slice(z, z_layout)?, d, self.0);
        Ok((CpuStorage::F32(y), x_layout.shape().clone()))
    }

    fn bwd(
        &self,
        _: &Tensor,
        z: &Tensor,
        _: &Tensor,
        dy: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let dz = dropped(&view(dy)?, z.dim(1)?, self.0);
        Ok((Some(dy.clone()), Some(cpu::like(dz, z)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Site;
    use crate::testing::{Case, param};

    const SHAPES: [(usize, usize); 5] = [(1, 1), (1, 9), (5, 24), (64, 17), (131, 40)];

    #[test]
    fn fused_equals_composed_on_odd_shapes_with_and_without_dropout() {
        for (n, d) in SHAPES {
            let gamma = Norm {
                weight: param("norm.weight", d),
                bias: param("norm.bias", d),
            };
            let params = [gamma.weight.clone(), gamma.bias.clone()];
            let one = Case::new(&params).input((n, d));
            one.check(|x, pass| norm(&x[0], &gamma, pass));
            for rate in [0.0, 0.4] {
                let two = Case::new(&params).input((n, d)).input((n, d));
                two.check(|x, pass| {
                    let dropout = pass.dropout(rate, Site::named("test"));
                    add_norm(&x[0], &x[1], dropout, &gamma, pass)
                });
                let none = Case::new(&[]).input((n, d)).input((n, d));
                none.check(|x, pass| {
                    let dropout = pass.dropout(rate, Site::named("test"));
                    add(&x[0], &x[1], dropout, pass)
                });
            }
        }
    }
}
