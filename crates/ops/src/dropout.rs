//! Dropout as an operation of its own: y = x · factor.

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};

use crate::cpu::{self, slice, view};
use crate::norm::dropped;
use crate::pass::{Kernels, Pass};
use crate::random::RowDropout;

/// `[n, d]` to `[n, d]`.
pub fn dropout(x: &Tensor, dropout: &RowDropout, pass: &Pass) -> Result<Tensor> {
    match (pass.kernels, dropout.is_none()) {
        (_, true) => Ok(x.clone()),
        (Kernels::Composed, false) => dropout.composed(x),
        (Kernels::Fused, false) => x.apply_op1(DropoutOp(dropout.clone())),
    }
}

struct DropoutOp(RowDropout);

impl CustomOp1 for DropoutOp {
    fn name(&self) -> &'static str {
        "dropout"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (_, d) = layout.shape().dims2()?;
        let y = dropped(slice(x, layout)?, d, &self.0).to_vec();
        Ok((CpuStorage::F32(y), layout.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        let dx = dropped(&view(dy)?, x.dim(1)?, &self.0).to_vec();
        cpu::like(dx, x).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Case};

    #[test]
    fn fused_equals_composed() {
        for rate in [0.0, 0.4] {
            Case::new(&[])
                .input((70, 9))
                .check(|x, pass| dropout(&x[0], &testing::dropout(70, rate, pass), pass));
        }
    }
}
