//! w_ij = exp(e_ij) / Σ_j' exp(e_ij'), over the keys that query i sees; zero for the others.

use std::ops::Range;

use candle_core::{CpuStorage, CustomOp1, D, Layout, Result, Shape, Tensor, bail};

use crate::cpu::{self, slice, view};
use crate::isa::kernel;
use crate::pass::{Kernels, Pass};
use crate::profile::{self, Part};
use crate::simd;

/// For every query, the keys of its sentence that it sees.
pub type Seen = Vec<Range<usize>>;

/// Subtracted from masked scores. They vanish in the softmax, but stay finite: a row that sees no key is
/// multiplied by zero afterwards, which would not help against NaN.
const HIDDEN: f64 = 1e30;

/// Scores `[n, s]` to weights `[n, s]`. A query that sees nothing gets zeros.
pub fn softmax(scores: &Tensor, seen: Seen, pass: &Pass) -> Result<Tensor> {
    let (n, s) = scores.dims2()?;
    if seen.len() != n || seen.iter().any(|seen| seen.end > s) {
        bail!(
            "{} rows of keys are seen in scores of {n} by {s}",
            seen.len()
        );
    }
    if pass.kernels == Kernels::Composed {
        return composed(scores, &seen);
    }
    if pass.trains() {
        scores.apply_op1(SoftmaxOp(seen))
    } else {
        scores.apply_op1_no_bwd(&SoftmaxOp(seen))
    }
}

fn composed(scores: &Tensor, seen: &Seen) -> Result<Tensor> {
    let (n, s) = scores.dims2()?;
    if n == 0 || s == 0 {
        return Ok(scores.clone());
    }
    let mut ones = vec![0f32; n * s];
    for (row, seen) in ones.chunks_exact_mut(s).zip(seen) {
        row[seen.clone()].fill(1.0);
    }
    let ones = Tensor::from_vec(ones, (n, s), scores.device())?;
    let hidden = ((&ones - 1.0)? * HIDDEN)?;
    candle_nn::ops::softmax(&(scores + hidden)?, D::Minus1)? * ones
}

struct SoftmaxOp(Seen);

impl CustomOp1 for SoftmaxOp {
    fn name(&self) -> &'static str {
        "softmax"
    }

    fn cpu_fwd(&self, scores: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let _time = profile::time(Part::Attention);
        let (n, s) = layout.shape().dims2()?;
        let mut weights = vec![0.0; n * s];
        let rows = slice(scores, layout)?.chunks_exact(s.max(1));
        for ((w, e), seen) in weights.chunks_exact_mut(s.max(1)).zip(rows).zip(&self.0) {
            softmax_row(&e[seen.clone()], &mut w[seen.clone()]);
        }
        Ok((CpuStorage::F32(weights), (n, s).into()))
    }

    fn bwd(&self, scores: &Tensor, weights: &Tensor, dw: &Tensor) -> Result<Option<Tensor>> {
        let _time = profile::time(Part::AttentionBackward);
        let s = scores.dim(1)?.max(1);
        let mut de = vec![0.0; scores.elem_count()];
        let (weights, dw) = (view(weights)?, view(dw)?);
        let rows = weights.chunks_exact(s).zip(dw.chunks_exact(s));
        for (de, (w, dw)) in de.chunks_exact_mut(s).zip(rows) {
            let mean = simd::dot(w, dw);
            for (de, (w, dw)) in de.iter_mut().zip(w.iter().zip(dw)) {
                *de = w * (dw - mean);
            }
        }
        cpu::like(de, scores).map(Some)
    }
}

kernel! {
    pub(crate) fn softmax_row(e: &[f32], w: &mut [f32]) {
        w.copy_from_slice(e);
        let sum = simd::exp_and_sum(w, simd::max(e), 1.0);
        w.iter_mut().for_each(|w| *w /= sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, weight};

    #[test]
    fn fused_equals_composed_for_any_mask() {
        for (n, s) in [(1, 1), (5, 3), (40, 33)] {
            let seen = |i: usize| (i % s).min(2)..(i * 7 % (s + 1)).max((i % s).min(2));
            let case = Case::new(&[]).input((n, s));
            case.check(|x, pass| softmax(&x[0], (0..n).map(seen).collect(), pass));
        }
    }

    #[test]
    fn weights_sum_to_one_over_visible_keys_and_are_zero_elsewhere() -> Result<()> {
        let scores = (weight("scores", (3, 6)).value().detach() * 100.0)?;
        let seen = vec![0..6, 2..4, 5..5];
        for kernels in Kernels::ALL {
            let weights = softmax(&scores, seen.clone(), &Pass::eval(kernels))?.to_vec2::<f32>()?;
            for (row, seen) in weights.iter().zip(&seen) {
                let inside: f32 = row[seen.clone()].iter().sum();
                let want = if seen.is_empty() { 0.0 } else { 1.0 };
                assert!((inside - want).abs() < 1e-6, "{row:?}");
                assert!((row.iter().sum::<f32>() - inside).abs() < 1e-6, "{row:?}");
            }
        }
        Ok(())
    }
}
