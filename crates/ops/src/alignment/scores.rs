//! e_ij = q_i · k_j.

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor};

use super::{Pairs, kernels};
use crate::cpu::{self, slice, view};
use crate::padding::{pad, unpad};
use crate::pass::{Kernels, Pass};
use crate::profile::{self, Part};
use crate::shared::Shared;

/// Scores by inner product: queries `[n, d]` and keys `[m, d]` to `[n, s]`.
pub fn dot_scores(q: &Tensor, keys: &Shared, pairs: &Pairs, pass: &Pass) -> Result<Tensor> {
    pairs.check(q.dim(0)?, keys.value().dim(0)?)?;
    let op = Dot {
        keys: keys.clone(),
        pairs: pairs.clone(),
    };
    match (pass.kernels, pass.trains()) {
        (Kernels::Composed, _) => composed(q, keys.value(), pairs),
        (Kernels::Fused, true) => q.apply_op2(keys.token(), op),
        (Kernels::Fused, false) => q.apply_op2_no_bwd(keys.token(), &op),
    }
}

fn composed(q: &Tensor, keys: &Tensor, pairs: &Pairs) -> Result<Tensor> {
    if pairs.queries.longest() == 0 || pairs.columns() == 0 {
        return Tensor::zeros((q.dim(0)?, pairs.columns()), q.dtype(), q.device());
    }
    let (q, k) = (pad(q, &pairs.queries)?, pad(keys, &pairs.keys)?);
    let scores = q.matmul(&k.t()?)?; // (b, t, s)
    let scores = scores.broadcast_mul(&pairs.present(q.device())?)?;
    unpad(&scores, &pairs.queries)
}

struct Dot {
    keys: Shared,
    pairs: Pairs,
}

impl CustomOp2 for Dot {
    fn name(&self) -> &'static str {
        "dot scores"
    }

    fn cpu_fwd(
        &self,
        q: &CpuStorage,
        layout: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let _time = profile::time(Part::Attention);
        let (n, s) = (self.pairs.queries.rows(), self.pairs.columns());
        let mut scores = vec![0.0; n * s];
        let (q, k) = (slice(q, layout)?, view(self.keys.value())?);
        kernels::inner(&self.pairs, q, &k, &mut scores);
        Ok((CpuStorage::F32(scores), (n, s).into()))
    }

    fn bwd(
        &self,
        q: &Tensor,
        _: &Tensor,
        _: &Tensor,
        de: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let _time = profile::time(Part::AttentionBackward);
        let mut dq = vec![0.0; q.elem_count()];
        let (qs, de, k) = (view(q)?, view(de)?, view(self.keys.value())?);
        kernels::weighted(&self.pairs, &de, &k, &mut dq);
        self.keys
            .accumulate(|dk| kernels::outer(&self.pairs, &de, &qs, dk));
        Ok((Some(cpu::like(dq, q)?), Some(self.keys.token_gradient()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::pairs;
    use super::*;
    use crate::testing::Case;

    #[test]
    fn fused_equals_composed_and_keys_used_twice_get_the_sum_of_gradients() {
        for pairs in pairs() {
            for d in [1, 7, 24] {
                let case = Case::new(&[])
                    .input((pairs.queries.rows(), d))
                    .input((pairs.keys.rows(), d));
                case.check(|x, pass| {
                    let keys = Shared::new(&x[1], pass)?;
                    let twice = (&x[0] * 2.0)?;
                    dot_scores(&x[0], &keys, &pairs, pass)?
                        + dot_scores(&twice, &keys, &pairs, pass)?.sqr()?
                });
            }
        }
    }
}
