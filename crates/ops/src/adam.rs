//! The optimizer's arithmetic: Adam (Kingma and Ba 2015) with decoupled weight decay (Loshchilov and
//! Hutter 2019), the norm of all gradients, and the moving average of parameters.

use std::ops::Range;

use candle_core::{DType, Device, Result, Tensor, Var};
use rayon::prelude::*;

use crate::Param;
use crate::cpu::{edit, view};
use crate::isa::kernel;
use crate::pass::Kernels;
use crate::profile::{self, Part};
use crate::simd;

/// One update. With g the gradient times `clip`:
/// m ← β₁ m + (1 - β₁) g,  v ← β₂ v + (1 - β₂) g²,
/// p ← p - lr · (m̂ / (√v̂ + ε) + decay · p).
#[derive(Clone, Copy, Debug)]
pub struct Adam {
    pub learning_rate: f64,
    pub beta1: f64,
    pub beta2: f64,
    pub epsilon: f64,
    pub weight_decay: f64,
    /// Counts from 1. Used to correct the bias of the moments.
    pub step: u64,
    /// Scales every gradient: see [`clip_factor`].
    pub clip: f64,
}

/// The moments of some elements of a parameter, `[elements]` each.
#[derive(Debug)]
pub struct Moments {
    pub m: Var,
    pub v: Var,
}

impl Moments {
    /// Those before the first update.
    pub fn zeros(elements: usize, device: &Device) -> Result<Self> {
        let zeros = || Var::zeros(elements, DType::F32, device);
        Ok(Self {
            m: zeros()?,
            v: zeros()?,
        })
    }
}

/// Elements per task.
const CHUNK: usize = 1 << 14;

impl Adam {
    /// Updates elements `own` of a parameter, and their moments, in place. `gradient` is that of the whole
    /// parameter, of which only these elements count.
    pub fn update(
        &self,
        param: &Param,
        gradient: &Tensor,
        own: Range<usize>,
        moments: &Moments,
        kernels: Kernels,
    ) -> Result<()> {
        if own.is_empty() {
            return Ok(());
        }
        match kernels {
            Kernels::Composed => self.composed(param, gradient, own, moments),
            Kernels::Fused => self.fused(param, gradient, own, moments),
        }
    }

    /// Factors of m and √v that correct their bias.
    fn corrections(&self) -> (f64, f64) {
        let step = self.step as f64;
        let first = 1.0 / (1.0 - self.beta1.powf(step));
        let second = 1.0 / (1.0 - self.beta2.powf(step)).sqrt();
        (first, second)
    }

    fn composed(
        &self,
        param: &Param,
        gradient: &Tensor,
        own: Range<usize>,
        Moments { m, v }: &Moments,
    ) -> Result<()> {
        let here = |tensor: &Tensor| tensor.flatten_all()?.narrow(0, own.start, own.len());
        let g = (here(gradient)? * self.clip)?;
        let (first, second) = self.corrections();
        m.set(&((m.as_tensor() * self.beta1)? + (&g * (1.0 - self.beta1))?)?)?;
        v.set(&((v.as_tensor() * self.beta2)? + (g.sqr()? * (1.0 - self.beta2))?)?)?;
        let direction = (m.as_tensor() * first)? / ((v.sqrt()? * second)? + self.epsilon)?;
        let p = here(&param.value().detach())?;
        let direction = (direction? + (&p * self.weight_decay)?)?;
        let p = (p - (direction * self.learning_rate)?)?;
        param.value().flatten_all()?.slice_set(&p, 0, own.start)
    }

    fn fused(
        &self,
        param: &Param,
        gradient: &Tensor,
        own: Range<usize>,
        Moments { m, v }: &Moments,
    ) -> Result<()> {
        let _time = profile::time(Part::Optimizer);
        let (first, second) = self.corrections();
        let rates = Rates {
            keep1: self.beta1 as f32,
            keep2: self.beta2 as f32,
            add1: (1.0 - self.beta1) as f32,
            add2: (1.0 - self.beta2) as f32,
            clip: self.clip as f32,
            step: (self.learning_rate * first) as f32,
            second: second as f32,
            epsilon: self.epsilon as f32,
            decay: (self.learning_rate * self.weight_decay) as f32,
        };
        let gradient = &view(gradient)?[own.clone()];
        edit(param.value(), |p| {
            let p = &mut p[own];
            edit(m, |m| {
                edit(v, |v| {
                    let moments = m.par_chunks_mut(CHUNK).zip(v.par_chunks_mut(CHUNK));
                    let values = p.par_chunks_mut(CHUNK).zip(gradient.par_chunks(CHUNK));
                    values
                        .zip(moments)
                        .for_each(|((p, g), (m, v))| update(p, g, m, v, rates));
                })
            })
        })??
    }
}

#[derive(Clone, Copy)]
struct Rates {
    keep1: f32,
    keep2: f32,
    add1: f32,
    add2: f32,
    clip: f32,
    step: f32,
    second: f32,
    epsilon: f32,
    decay: f32,
}

kernel! {
    fn update(p: &mut [f32], g: &[f32], m: &mut [f32], v: &mut [f32], rates: Rates) {
        let moments = m.iter_mut().zip(v);
        for ((p, g), (m, v)) in p.iter_mut().zip(g).zip(moments) {
            let g = g * rates.clip;
            *m = rates.keep1 * *m + rates.add1 * g;
            *v = rates.keep2 * *v + rates.add2 * (g * g);
            let direction = rates.step * *m / (v.sqrt() * rates.second + rates.epsilon);
            *p -= direction + rates.decay * *p;
        }
    }
}

/// The Euclidean norm over all elements of all tensors. The order of summation is fixed.
pub fn norm_of_all<'a>(
    tensors: impl IntoIterator<Item = &'a Tensor>,
    kernels: Kernels,
) -> Result<f64> {
    let _time = profile::time(Part::Optimizer);
    let mut squares = 0.0;
    for tensor in tensors {
        squares += match kernels {
            Kernels::Composed => {
                let sum = tensor.sqr()?.sum_all()?;
                f64::from(sum.to_dtype(DType::F32)?.to_scalar::<f32>()?)
            }
            Kernels::Fused => {
                let chunks: &[f32] = &view(tensor)?;
                let sums: Vec<f32> = chunks.par_chunks(CHUNK).map(square_sum).collect();
                sums.into_iter().map(f64::from).sum()
            }
        };
    }
    Ok(squares.sqrt())
}

kernel! {
    fn square_sum(x: &[f32]) -> f32 {
        simd::dot(x, x)
    }
}

/// The factor that scales gradients of this norm to at most `limit`.
pub fn clip_factor(norm: f64, limit: Option<f64>) -> f64 {
    match limit {
        Some(limit) if norm > limit => limit / norm,
        _ => 1.0,
    }
}

/// average ← decay · average + (1 - decay) · value.
pub fn moving_average(average: &Var, value: &Tensor, decay: f64, kernels: Kernels) -> Result<()> {
    let _time = profile::time(Part::Optimizer);
    if kernels == Kernels::Composed {
        let value = (value.detach() * (1.0 - decay))?;
        return average.set(&((average.as_tensor() * decay)? + value)?);
    }
    let value: &[f32] = &view(value)?;
    let (keep, add) = (decay as f32, (1.0 - decay) as f32);
    edit(average, |average| {
        let chunks = average.par_chunks_mut(CHUNK).zip(value.par_chunks(CHUNK));
        chunks.for_each(|(average, value)| {
            let pairs = average.iter_mut().zip(value);
            pairs.for_each(|(average, value)| *average = keep * *average + add * value);
        });
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, weight};
    use candle_core::Device;

    fn adam(step: u64) -> Adam {
        Adam {
            learning_rate: 0.01,
            beta1: 0.9,
            beta2: 0.98,
            epsilon: 1e-9,
            weight_decay: 0.05,
            step,
            clip: 0.5,
        }
    }

    #[test]
    fn fused_equals_composed_over_several_steps() -> Result<()> {
        let run = |kernels| -> Result<[Tensor; 3]> {
            let p = weight("p", 20_000);
            // Two owners, as with two ranks.
            let owners = [0..12_345, 12_345..20_000];
            let moments = owners
                .clone()
                .map(|own| Moments::zeros(own.len(), &Device::Cpu));
            let moments: Vec<Moments> = moments.into_iter().collect::<Result<_>>()?;
            for step in 1..=4 {
                let gradient = weight(&format!("gradient {step}"), 20_000).value().detach();
                for (own, moments) in owners.clone().into_iter().zip(&moments) {
                    let param = p.param().unwrap();
                    adam(step).update(param, &gradient, own, moments, kernels)?;
                }
            }
            let cat = |part: fn(&Moments) -> &Tensor| {
                Tensor::cat(&moments.iter().map(part).collect::<Vec<_>>(), 0)
            };
            Ok([
                p.value().detach(),
                cat(|it| it.m.as_tensor())?,
                cat(|it| it.v.as_tensor())?,
            ])
        };
        for (fused, composed) in run(Kernels::Fused)?.iter().zip(run(Kernels::Composed)?) {
            assert_close(fused, &composed, 1e-6);
        }
        Ok(())
    }

    /// torch.optim.AdamW(lr=0.1, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.01), two steps on
    /// [1, -2] with gradients [0.5, -1] and [0.25, 2].
    #[test]
    fn two_steps_equal_a_calculation_by_hand() -> Result<()> {
        let start = Tensor::new(&[1.0f32, -2.0], &Device::Cpu)?;
        let gradients = [[0.5f32, -1.0], [0.25, 2.0]];
        let mut expected = [1.0f64, -2.0];
        for (j, p) in expected.iter_mut().enumerate() {
            let (mut m, mut v) = (0.0, 0.0);
            for (t, g) in gradients.iter().enumerate() {
                let (g, t) = (f64::from(g[j]), t as i32 + 1);
                m = 0.9 * m + 0.1 * g;
                v = 0.98 * v + 0.02 * g * g;
                let (m, v) = (m / (1.0 - 0.9f64.powi(t)), v / (1.0 - 0.98f64.powi(t)));
                *p = *p * (1.0 - 0.1 * 0.01) - 0.1 * m / (v.sqrt() + 1e-9);
            }
        }
        for kernels in Kernels::ALL {
            let p = Param::new("p", &start)?;
            let moments = Moments::zeros(2, &Device::Cpu)?;
            for (t, gradient) in gradients.iter().enumerate() {
                let step = Adam {
                    learning_rate: 0.1,
                    weight_decay: 0.01,
                    clip: 1.0,
                    ..adam(t as u64 + 1)
                };
                let gradient = Tensor::new(gradient, &Device::Cpu)?;
                step.update(&p, &gradient, 0..2, &moments, kernels)?;
            }
            for (p, expected) in p.value().to_vec1::<f32>()?.iter().zip(expected) {
                assert!(
                    (f64::from(*p) - expected).abs() < 1e-6,
                    "{p} is not {expected}"
                );
            }
        }
        Ok(())
    }

    #[test]
    fn the_norm_is_over_all_gradients_and_only_larger_norms_are_clipped() -> Result<()> {
        let gradients = [
            Tensor::new(&[3.0f32], &Device::Cpu)?,
            Tensor::new(&[0.0f32, 4.0], &Device::Cpu)?,
        ];
        for kernels in Kernels::ALL {
            assert_eq!(norm_of_all(&gradients, kernels)?, 5.0);
        }
        assert_eq!(clip_factor(5.0, Some(1.0)), 0.2);
        assert_eq!(clip_factor(5.0, Some(10.0)), 1.0);
        assert_eq!(clip_factor(5.0, None), 1.0);
        Ok(())
    }

    #[test]
    fn the_moving_average_is_the_same_with_both_kernels() -> Result<()> {
        for kernels in Kernels::ALL {
            let average = Var::from_tensor(&Tensor::new(&[1.0f32, 2.0], &Device::Cpu)?)?;
            moving_average(
                &average,
                &Tensor::new(&[3.0f32, 2.0], &Device::Cpu)?,
                0.75,
                kernels,
            )?;
            assert_eq!(average.to_vec1::<f32>()?, [1.5, 2.0]);
        }
        Ok(())
    }
}
