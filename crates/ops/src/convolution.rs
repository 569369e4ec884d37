//! The parts of a causal convolution besides its affine map: shifting rows, concatenating columns, and the
//! gated activation (van den Oord et al. 2016, "WaveNet").
//!
//! n rows, d wide:  z_t = W [x_{t-r} ; x_t] + b  is  linear(beside(shift(x, r), x)).

use attend_batch::Segments;
use candle_core::{CpuStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use crate::cpu::{self, slice, view};
use crate::isa::kernel;
use crate::pass::{Kernels, Pass};
use crate::profile::{self, Part};
use crate::simd::{TASK_ROWS, sigmoid, tanh};

/// Shifts the rows of every sentence down by `by` and fills with zeros: `[n, d]` to `[n, d]`.
pub fn shift(x: &Tensor, sentences: &Segments, by: usize, pass: &Pass) -> Result<Tensor> {
    if x.dim(0)? != sentences.rows() {
        bail!(
            "{} rows do not match the lengths of their sentences",
            x.dim(0)?
        );
    }
    let op = Shift {
        sentences: sentences.clone(),
        by,
    };
    match (pass.kernels, pass.trains()) {
        (Kernels::Composed, _) => op.composed(x),
        (Kernels::Fused, true) => x.apply_op1(op),
        (Kernels::Fused, false) => x.apply_op1_no_bwd(&op),
    }
}

/// Concatenates columns: `[n, c]` and `[n, d]` to `[n, c + d]`.
pub fn beside(x: &Tensor, y: &Tensor, pass: &Pass) -> Result<Tensor> {
    let (n, rows) = (x.dim(0)?, y.dim(0)?);
    if n != rows {
        bail!("cannot concatenate the columns of {n} and {rows} rows");
    }
    match (pass.kernels, pass.trains()) {
        (Kernels::Composed, _) => Tensor::cat(&[x, y], 1),
        (Kernels::Fused, true) => x.apply_op2(y, Beside),
        (Kernels::Fused, false) => x.apply_op2_no_bwd(y, &Beside),
    }
}

/// tanh(f) ⊙ σ(g), where f and g are the halves of each row: `[n, 2d]` to `[n, d]`.
pub fn gated(z: &Tensor, pass: &Pass) -> Result<Tensor> {
    let (_, width) = z.dims2()?;
    if !width.is_multiple_of(2) {
        bail!("a gated activation needs an even number of columns, not {width}");
    }
    match (pass.kernels, pass.trains()) {
        (Kernels::Composed, _) => {
            let half = |first| z.narrow(1, first, width / 2);
            let open = (half(width / 2)?.neg()?.exp()? + 1.0)?.recip()?;
            half(0)?.tanh()? * open
        }
        (Kernels::Fused, true) => z.apply_op1(Gated),
        (Kernels::Fused, false) => z.apply_op1_no_bwd(&Gated),
    }
}

struct Shift {
    sentences: Segments,
    by: usize,
}

impl Shift {
    fn composed(&self, x: &Tensor) -> Result<Tensor> {
        let zero = Tensor::zeros((1, x.dim(1)?), x.dtype(), x.device())?;
        let rows = self.down().into_iter();
        let rows = rows.map(|row| row.map_or(0, |row| row as u32 + 1));
        let rows = Tensor::new(rows.collect::<Vec<_>>(), x.device())?;
        Tensor::cat(&[&zero, x], 0)?.index_select(&rows, 0)
    }

    /// For every row of the output, the row of the input; `None` for zeros.
    fn down(&self) -> Vec<Option<usize>> {
        let rows = self.sentences.ranges().flat_map(|range| {
            let (start, by) = (range.start, self.by);
            range.map(move |row| row.checked_sub(by).filter(|&past| past >= start))
        });
        rows.collect()
    }

    /// The same for the backward pass.
    fn up(&self) -> Vec<Option<usize>> {
        let rows = self.sentences.ranges().flat_map(|range| {
            let (end, by) = (range.end, self.by);
            range.map(move |row| Some(row + by).filter(|&next| next < end))
        });
        rows.collect()
    }
}

impl CustomOp1 for Shift {
    fn name(&self) -> &'static str {
        "shift"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (_, d) = layout.shape().dims2()?;
        let y = gather(slice(x, layout)?, d, &self.down());
        Ok((CpuStorage::F32(y), layout.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        let dx = gather(&view(dy)?, x.dim(1)?, &self.up());
        cpu::like(dx, x).map(Some)
    }
}

/// The given rows of x `[n, d]`; zeros for `None`.
fn gather(x: &[f32], d: usize, rows: &[Option<usize>]) -> Vec<f32> {
    let _time = profile::time(Part::Activation);
    let mut y = vec![0.0; rows.len() * d];
    let chunks = y
        .par_chunks_mut(TASK_ROWS * d)
        .zip(rows.par_chunks(TASK_ROWS));
    chunks.for_each(|(y, rows)| {
        for (y, row) in y.chunks_exact_mut(d).zip(rows) {
            if let Some(row) = row {
                y.copy_from_slice(&x[row * d..(row + 1) * d]);
            }
        }
    });
    y
}

struct Beside;

impl CustomOp2 for Beside {
    fn name(&self) -> &'static str {
        "beside"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        y: &CpuStorage,
        y_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let _time = profile::time(Part::Activation);
        let ((n, c), (_, d)) = (x_layout.shape().dims2()?, y_layout.shape().dims2()?);
        let (x, y) = (slice(x, x_layout)?, slice(y, y_layout)?);
        let mut both = vec![0.0; n * (c + d)];
        let chunks = both.par_chunks_mut(TASK_ROWS * (c + d));
        let chunks = chunks.zip(x.par_chunks(TASK_ROWS * c).zip(y.par_chunks(TASK_ROWS * d)));
        chunks.for_each(|(both, (x, y))| {
            let parts = x.chunks_exact(c).zip(y.chunks_exact(d));
            for (both, (x, y)) in both.chunks_exact_mut(c + d).zip(parts) {
                both[..c].copy_from_slice(x);
                both[c..].copy_from_slice(y);
            }
        });
        Ok((CpuStorage::F32(both), (n, c + d).into()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        y: &Tensor,
        _: &Tensor,
        both: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let _time = profile::time(Part::Activation);
        let (c, d) = (x.dim(1)?, y.dim(1)?);
        let (mut dx, mut dy) = (vec![0.0; x.elem_count()], vec![0.0; y.elem_count()]);
        let both = view(both)?;
        let chunks = both.par_chunks(TASK_ROWS * (c + d));
        let chunks = chunks.zip(
            dx.par_chunks_mut(TASK_ROWS * c)
                .zip(dy.par_chunks_mut(TASK_ROWS * d)),
        );
        chunks.for_each(|(both, (dx, dy))| {
            let parts = dx.chunks_exact_mut(c).zip(dy.chunks_exact_mut(d));
            for (both, (dx, dy)) in both.chunks_exact(c + d).zip(parts) {
                dx.copy_from_slice(&both[..c]);
                dy.copy_from_slice(&both[c..]);
            }
        });
        Ok((Some(cpu::like(dx, x)?), Some(cpu::like(dy, y)?)))
    }
}

struct Gated;

impl CustomOp1 for Gated {
    fn name(&self) -> &'static str {
        "gated"
    }

    fn cpu_fwd(&self, z: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let _time = profile::time(Part::Activation);
        let (n, width) = layout.shape().dims2()?;
        let (z, d) = (slice(z, layout)?, width / 2);
        let mut y = vec![0.0; n * d];
        let chunks = y
            .par_chunks_mut(TASK_ROWS * d)
            .zip(z.par_chunks(TASK_ROWS * width));
        chunks.for_each(|(y, z)| {
            let rows = y.chunks_exact_mut(d).zip(z.chunks_exact(width));
            rows.for_each(|(y, z)| gate_row(z, y));
        });
        Ok((CpuStorage::F32(y), (n, d).into()))
    }

    fn bwd(&self, z: &Tensor, _: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        let _time = profile::time(Part::Activation);
        let (width, d) = (z.dim(1)?, dy.dim(1)?);
        let mut dz = vec![0.0; z.elem_count()];
        let (zs, dy) = (view(z)?, view(dy)?);
        let chunks = zs
            .par_chunks(TASK_ROWS * width)
            .zip(dy.par_chunks(TASK_ROWS * d));
        let chunks = dz.par_chunks_mut(TASK_ROWS * width).zip(chunks);
        chunks.for_each(|(dz, (z, dy))| {
            let rows = z.chunks_exact(width).zip(dy.chunks_exact(d));
            let rows = dz.chunks_exact_mut(width).zip(rows);
            rows.for_each(|(dz, (z, dy))| gate_row_backward(z, dy, dz));
        });
        cpu::like(dz, z).map(Some)
    }
}

kernel! {
    fn gate_row(z: &[f32], y: &mut [f32]) {
        let (f, g) = z.split_at(y.len());
        for (y, (f, g)) in y.iter_mut().zip(f.iter().zip(g)) {
            *y = tanh(*f) * sigmoid(*g);
        }
    }
}

kernel! {
    /// df = dy σ(g) (1 - tanh²(f)),  dg = dy tanh(f) σ(g) (1 - σ(g)).
    fn gate_row_backward(z: &[f32], dy: &[f32], dz: &mut [f32]) {
        let d = dy.len();
        let ((f, g), (df, dg)) = (z.split_at(d), dz.split_at_mut(d));
        let (g, dg) = (&g[..d], &mut dg[..d]);
        for j in 0..d {
            let (value, open) = (tanh(f[j]), sigmoid(g[j]));
            df[j] = dy[j] * open * (1.0 - value * value);
            dg[j] = dy[j] * value * open * (1.0 - open);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, weight};

    #[test]
    fn fused_equals_composed_for_shifts_within_and_beyond_the_sentences() {
        for lengths in [&[1][..], &[5, 0, 1, 9], &[70, 3]] {
            let sentences = Segments::packed(lengths.iter().copied());
            for by in [0, 1, 2, 8, 100] {
                let case = Case::new(&[]).input((sentences.rows(), 7));
                case.check(|x, pass| shift(&x[0], &sentences, by, pass));
            }
        }
    }

    #[test]
    fn a_shift_moves_rows_down_within_their_sentence() -> Result<()> {
        let x = Tensor::arange(1f32, 7.0, &candle_core::Device::Cpu)?.reshape((6, 1))?;
        let sentences = Segments::packed([4, 2]);
        for kernels in Kernels::ALL {
            let y = shift(&x, &sentences, 2, &Pass::eval(kernels))?;
            let y = y.flatten_all()?.to_vec1::<f32>()?;
            assert_eq!(y, [0.0, 0.0, 1.0, 2.0, 0.0, 0.0]);
        }
        Ok(())
    }

    #[test]
    fn fused_equals_composed_for_concatenated_columns() {
        for (n, c, d) in [(1, 1, 1), (5, 3, 8), (130, 40, 7)] {
            let case = Case::new(&[]).input((n, c)).input((n, d));
            case.check(|x, pass| beside(&x[0], &x[1], pass));
        }
    }

    #[test]
    fn fused_equals_composed_for_gates() {
        for (n, d) in [(1, 1), (5, 9), (130, 24)] {
            let case = Case::new(&[]).input((n, 2 * d));
            case.check(|z, pass| gated(&z[0], pass));
        }
    }

    #[test]
    fn mismatched_shapes_are_errors() {
        let z = weight("z", (3, 5)).value().detach();
        let pass = Pass::eval(Kernels::Fused);
        assert!(gated(&z, &pass).is_err());
        assert!(beside(&z, &z.t().unwrap(), &pass).is_err());
        assert!(shift(&z, &Segments::packed([2]), 1, &pass).is_err());
    }
}
