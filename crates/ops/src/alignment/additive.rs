//! e_ij = v · f(q_i + k_j)  (Bahdanau, Cho and Bengio 2015, where f is tanh). Both projections are done before.

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor, bail};

use super::{Pairs, kernels};
use crate::buffer::Buffer;
use crate::cpu::{self, slice, view};
use crate::gemm::Write;
use crate::isa::kernel;
use crate::padding::{pad, unpad};
use crate::pass::{Kernels, Pass};
use crate::profile::{self, Part};
use crate::shared::Shared;
use crate::simd::{self, sigmoid, tanh};
use crate::weight::{Weight, recorded};

/// f, the non-linearity of an additive score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdditiveActivation {
    #[default]
    Tanh,
    Sigmoid,
    Relu,
}

impl AdditiveActivation {
    pub const ALL: [Self; 3] = [Self::Tanh, Self::Sigmoid, Self::Relu];

    /// The cost of f, in multiplications.
    fn cost(self) -> usize {
        match self {
            Self::Tanh => 12,
            Self::Sigmoid => 10,
            Self::Relu => 1,
        }
    }

    fn composed(self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::Tanh => x.tanh(),
            // Not by exp, whose gradient is not finite far from zero.
            Self::Sigmoid => ((x * 0.5)?.tanh()? * 0.5)? + 0.5,
            Self::Relu => x.relu(),
        }
    }
}

/// Additive scores: queries `[n, a]`, keys `[m, a]`, both projected, and v `[a]` to `[n, s]`.
pub fn additive_scores(
    q: &Tensor,
    keys: &Shared,
    vector: &Weight,
    activation: AdditiveActivation,
    pairs: &Pairs,
    pass: &Pass,
) -> Result<Tensor> {
    pairs.check(q.dim(0)?, keys.value().dim(0)?)?;
    if vector.value().dims1()? != q.dim(1)? || keys.value().dim(1)? != q.dim(1)? {
        bail!("additive scores need queries, keys and vector of the same width");
    }
    let op = Additive {
        keys: keys.clone(),
        vector: vector.clone(),
        activation,
        pairs: pairs.clone(),
    };
    match (pass.kernels, pass.trains()) {
        (Kernels::Composed, _) => composed(q, keys.value(), vector.value(), activation, pairs),
        (Kernels::Fused, true) => recorded(q, [vector])?.apply_op2(keys.token(), op),
        (Kernels::Fused, false) => q.apply_op2_no_bwd(keys.token(), &op),
    }
}

fn composed(
    q: &Tensor,
    keys: &Tensor,
    vector: &Tensor,
    activation: AdditiveActivation,
    pairs: &Pairs,
) -> Result<Tensor> {
    if pairs.queries.longest() == 0 || pairs.columns() == 0 {
        return Tensor::zeros((q.dim(0)?, pairs.columns()), q.dtype(), q.device());
    }
    let q = pad(q, &pairs.queries)?.unsqueeze(2)?; // (b, t, 1, a)
    let k = pad(keys, &pairs.keys)?.unsqueeze(1)?; // (b, 1, s, a)
    let inner = activation.composed(&q.broadcast_add(&k)?)?; // (b, t, s, a)
    let (b, t, s, a) = inner.dims4()?;
    let scores = inner
        .reshape((b * t * s, a))?
        .matmul(&vector.unsqueeze(1)?)?;
    let scores = scores.reshape((b, t, s))?;
    let scores = scores.broadcast_mul(&pairs.present(q.device())?)?;
    unpad(&scores, &pairs.queries)
}

struct Additive {
    keys: Shared,
    vector: Weight,
    activation: AdditiveActivation,
    pairs: Pairs,
}

impl CustomOp2 for Additive {
    fn name(&self) -> &'static str {
        "additive scores"
    }

    fn cpu_fwd(
        &self,
        q: &CpuStorage,
        layout: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let _time = profile::time(Part::Attention);
        let (n, a) = layout.shape().dims2()?;
        let Pairs { queries, keys } = &self.pairs;
        let s = self.pairs.columns();
        let mut scores = vec![0.0; n * s];
        let q = slice(q, layout)?;
        let k: &[f32] = &view(self.keys.value())?;
        let v: &[f32] = &view(self.vector.value())?;
        kernels::each(
            queries.split(&mut scores, s),
            &self.pairs,
            self.activation.cost() * a,
            |i, e| {
                let (rows, keys) = (queries.range(i), keys.range(i));
                let k = &k[keys.start * a..keys.end * a];
                let rows = q[rows.start * a..rows.end * a].chunks_exact(a);
                rows.zip(e.chunks_exact_mut(s.max(1)))
                    .for_each(|(q, e)| score_row(q, k, v, self.activation, &mut e[..keys.len()]));
            },
        );
        Ok((CpuStorage::F32(scores), (n, s).into()))
    }

    /// Recomputes f: keeping its values would take `[n, s, a]`.
    fn bwd(
        &self,
        q: &Tensor,
        _: &Tensor,
        _: &Tensor,
        de: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let _time = profile::time(Part::AttentionBackward);
        let Pairs { queries, keys } = &self.pairs;
        let (s, a) = (self.pairs.columns(), q.dim(1)?);
        let (qs, de): (&[f32], &[f32]) = (&view(q)?, &view(de)?);
        let k: &[f32] = &view(self.keys.value())?;
        let v: &[f32] = &view(self.vector.value())?;
        // Per sentence: the gradient of its queries, then its part of the gradient of v.
        let sizes = queries.lengths().iter().map(|t| (t + 1) * a);
        let mut own = Buffer::zeros(sizes.clone().sum());
        let mut parts = Vec::with_capacity(queries.count());
        let mut rest = &mut *own;
        for size in sizes.clone() {
            let (part, after) = rest.split_at_mut(size);
            parts.push(std::sync::Mutex::new(part));
            rest = after;
        }
        self.keys.accumulate(|dk| {
            let cost = 2 * self.activation.cost() * a;
            kernels::each(keys.split(dk, a), &self.pairs, cost, |i, dk| {
                let (rows, keys) = (queries.range(i), keys.range(i));
                let k = &k[keys.start * a..keys.end * a];
                let mut own = parts[i].lock().unwrap_or_else(|e| e.into_inner());
                let (dq, dv) = own.split_at_mut(rows.len() * a);
                for (row, dq) in rows.zip(dq.chunks_exact_mut(a)) {
                    let (q, de) = (&qs[row * a..][..a], &de[row * s..][..keys.len()]);
                    score_row_backward(q, k, v, self.activation, de, [dq, dk, dv]);
                }
            });
        });
        drop(parts);
        let (mut dq, mut dvs) = (Vec::with_capacity(q.elem_count()), Vec::new());
        let mut rest = &*own;
        for size in sizes {
            let (part, after) = rest.split_at(size);
            let (queries, dv) = part.split_at(size - a);
            dq.extend_from_slice(queries);
            dvs.push(dv);
            rest = after;
        }
        self.vector.accumulate(|sum, write| {
            if write == Write::Over {
                sum.fill(0.0);
            }
            for dv in dvs {
                sum.iter_mut().zip(dv).for_each(|(sum, dv)| *sum += dv);
            }
        })?;
        Ok((Some(cpu::like(dq, q)?), Some(self.keys.token_gradient()?)))
    }
}

/// Elements per pass. Values of f and their sum are two loops, because compilers do not vectorise a sum of
/// tangents.
const BENT: usize = 64;

kernel! {
    pub(crate) fn score_row(q: &[f32], k: &[f32], v: &[f32], activation: AdditiveActivation, e: &mut [f32]) {
        match activation {
            AdditiveActivation::Tanh => scores(q, k, v, e, tanh),
            AdditiveActivation::Sigmoid => scores(q, k, v, e, sigmoid),
            AdditiveActivation::Relu => scores(q, k, v, e, relu),
        }
    }
}

#[inline(always)]
fn relu(x: f32) -> f32 {
    if x < 0.0 { 0.0 } else { x }
}

#[inline(always)]
fn scores(q: &[f32], k: &[f32], v: &[f32], e: &mut [f32], f: impl Fn(f32) -> f32) {
    let mut bent = [0.0; BENT];
    for (e, k) in e.iter_mut().zip(k.chunks_exact(q.len())) {
        let parts = q.chunks(BENT).zip(k.chunks(BENT)).zip(v.chunks(BENT));
        *e = 0.0;
        for ((q, k), v) in parts {
            let bent = &mut bent[..q.len()];
            for (bent, ((q, k), v)) in bent.iter_mut().zip(q.iter().zip(k).zip(v)) {
                *bent = v * f(q + k);
            }
            *e += simd::sum(bent);
        }
    }
}

kernel! {
    pub(crate) fn score_row_backward(
        q: &[f32],
        k: &[f32],
        v: &[f32],
        activation: AdditiveActivation,
        de: &[f32],
        sums: [&mut [f32]; 3],
    ) {
        match activation {
            AdditiveActivation::Tanh => gradients(q, k, v, de, sums, |x| {
                let y = tanh(x);
                (y, 1.0 - y * y)
            }),
            AdditiveActivation::Sigmoid => gradients(q, k, v, de, sums, |x| {
                let y = sigmoid(x);
                (y, y * (1.0 - y))
            }),
            // At zero the slope is 1, as in candle.
            AdditiveActivation::Relu => gradients(q, k, v, de, sums, |x| {
                (relu(x), if x < 0.0 { 0.0 } else { 1.0 })
            }),
        }
    }
}

/// Adds to the gradients of q, k and v. `f` gives the value and the slope at a point.
#[inline(always)]
fn gradients(
    q: &[f32],
    k: &[f32],
    v: &[f32],
    de: &[f32],
    [dq, dk, dv]: [&mut [f32]; 3],
    f: impl Fn(f32) -> (f32, f32),
) {
    let a = q.len();
    let (v, dq, dv) = (&v[..a], &mut dq[..a], &mut dv[..a]);
    let keys = k.chunks_exact(a).zip(dk.chunks_exact_mut(a));
    for (&de, (k, dk)) in de.iter().zip(keys) {
        for c in 0..a {
            let (y, slope) = f(q[c] + k[c]);
            let dz = de * v[c] * slope;
            dv[c] += de * y;
            dq[c] += dz;
            dk[c] += dz;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::pairs;
    use super::*;
    use crate::testing::{Case, weight};

    #[test]
    fn fused_equals_composed() {
        for pairs in pairs() {
            for a in [1, 7, 24] {
                for f in AdditiveActivation::ALL {
                    let vector = weight("vector", a);
                    let case = Case::new(std::slice::from_ref(&vector))
                        .input((pairs.queries.rows(), a))
                        .input((pairs.keys.rows(), a));
                    case.check(|x, pass| {
                        let keys = Shared::new(&x[1], pass)?;
                        let first = additive_scores(&x[0], &keys, &vector, f, &pairs, pass)?;
                        let other = (&x[0] * 0.5)?;
                        first + additive_scores(&other, &keys, &vector, f, &pairs, pass)?
                    });
                }
            }
        }
    }
}
