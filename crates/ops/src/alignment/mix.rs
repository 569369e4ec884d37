//! c_i = Σ_j w_ij v_j.

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor};

use super::{Pairs, kernels};
use crate::cpu::{self, slice, view};
use crate::padding::{pad, unpad};
use crate::pass::{Kernels, Pass};
use crate::profile::{self, Part};
use crate::shared::Shared;

/// The weighted sum of each sentence's values: weights `[n, s]` and values `[m, d]` to `[n, d]`.
pub fn mix(weights: &Tensor, values: &Shared, pairs: &Pairs, pass: &Pass) -> Result<Tensor> {
    pairs.check(weights.dim(0)?, values.value().dim(0)?)?;
    let op = Mix {
        values: values.clone(),
        pairs: pairs.clone(),
    };
    match (pass.kernels, pass.trains()) {
        (Kernels::Composed, _) => composed(weights, values.value(), pairs),
        (Kernels::Fused, true) => weights.apply_op2(values.token(), op),
        (Kernels::Fused, false) => weights.apply_op2_no_bwd(values.token(), &op),
    }
}

fn composed(weights: &Tensor, values: &Tensor, pairs: &Pairs) -> Result<Tensor> {
    if pairs.queries.longest() == 0 || pairs.columns() == 0 {
        let shape = (weights.dim(0)?, values.dim(1)?);
        return Tensor::zeros(shape, values.dtype(), values.device());
    }
    let weights = pad(weights, &pairs.queries)?; // (b, t, s)
    let weights = weights.broadcast_mul(&pairs.present(values.device())?)?;
    unpad(&weights.matmul(&pad(values, &pairs.keys)?)?, &pairs.queries)
}

struct Mix {
    values: Shared,
    pairs: Pairs,
}

impl CustomOp2 for Mix {
    fn name(&self) -> &'static str {
        "mix"
    }

    fn cpu_fwd(
        &self,
        weights: &CpuStorage,
        layout: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let _time = profile::time(Part::Attention);
        let (n, d) = (self.pairs.queries.rows(), self.values.value().dim(1)?);
        let mut context = vec![0.0; n * d];
        let (weights, values) = (slice(weights, layout)?, view(self.values.value())?);
        kernels::weighted(&self.pairs, weights, &values, &mut context);
        Ok((CpuStorage::F32(context), (n, d).into()))
    }

    fn bwd(
        &self,
        weights: &Tensor,
        _: &Tensor,
        _: &Tensor,
        dc: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let _time = profile::time(Part::AttentionBackward);
        let mut dw = vec![0.0; weights.elem_count()];
        let (ws, dc, values) = (view(weights)?, view(dc)?, view(self.values.value())?);
        kernels::inner(&self.pairs, &dc, &values, &mut dw);
        self.values
            .accumulate(|dv| kernels::outer(&self.pairs, &ws, &dc, dv));
        Ok((
            Some(cpu::like(dw, weights)?),
            Some(self.values.token_gradient()?),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::pairs;
    use super::*;
    use crate::testing::Case;

    #[test]
    fn fused_equals_composed() {
        for pairs in pairs() {
            for d in [1, 7, 24] {
                let case = Case::new(&[])
                    .input((pairs.queries.rows(), pairs.columns()))
                    .input((pairs.keys.rows(), d));
                case.check(|x, pass| mix(&x[0], &Shared::new(&x[1], pass)?, &pairs, pass));
            }
        }
    }
}
