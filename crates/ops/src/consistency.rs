//! The loss of two passes over the same tokens, which are to predict alike.
//!
//! With p = softmax of the logits of the first pass, q of the second, both over the c words, and ℓ the label-smoothed
//! cross-entropy (see `loss.rs`), summed over tokens:
//! loss = λ₁ ℓ(p) + λ₂ ℓ(q) + κ₁ KL(p ‖ q) + κ₂ KL(q ‖ p),  KL(p ‖ q) = Σ over words of p (log p - log q).
//!
//! The gradient of KL(p ‖ q) by the logits is p (log p - log q - KL(p ‖ q)) for the first, and q - p for the second.

use std::sync::Mutex;

use candle_core::{CpuStorage, CustomOp3, D, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use crate::buffer::Buffer;
use crate::cpu::{self, view};
use crate::gemm::{Mat, MatMut, Threads, Write, product};
use crate::isa::kernel;
use crate::linear::{Linear, recorded_by};
use crate::loss::{Loss, check_targets, rows_held};
use crate::pass::{Kernels, Pass};
use crate::profile::{self, Part};
use crate::simd::{self, add_scaled};
use crate::weight::Weight;

/// How two passes are weighted and compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Consistency {
    /// Weights of the cross-entropies, λ.
    pub losses: [f32; 2],
    /// Weights of the divergences, κ: of the second pass from the first, and of the first from the second.
    pub divergences: [f32; 2],
    /// Whether the divergences change the second pass only.
    pub first_is_fixed: bool,
}

/// The loss of two passes with hidden states `[n, d]`. [`Loss::each`] and the counts are those of the first pass; the
/// smoothed cross-entropies of the tokens in the second are returned beside it.
pub fn consistent_cross_entropy(
    hidden: [&Tensor; 2],
    output: &Linear,
    targets: &[u32],
    smoothing: f32,
    consistency: Consistency,
    pass: &Pass,
) -> Result<(Loss, Vec<f32>)> {
    if hidden[0].dims() != hidden[1].dims() {
        let [a, b] = hidden.map(Tensor::dims);
        bail!("the passes have hidden states of shapes {a:?} and {b:?}");
    }
    check_targets(hidden[0], output, targets)?;
    if !pass.trains() {
        bail!("two passes are compared in training only");
    }
    let terms = Terms {
        smoothing,
        consistency,
    };
    match pass.kernels {
        Kernels::Composed => composed(hidden, output, targets, terms),
        Kernels::Fused => fused(hidden, output, targets, terms),
    }
}

/// What a loss is made of.
#[derive(Clone, Copy)]
struct Terms {
    smoothing: f32,
    consistency: Consistency,
}

impl Consistency {
    /// The mean of the divergences that count, of their sums over tokens.
    fn mean(&self, divergences: [f64; 2]) -> f64 {
        let weights = self.divergences.map(f64::from);
        let sum = weights[0] * divergences[0] + weights[1] * divergences[1];
        match weights[0] + weights[1] {
            0.0 => 0.0,
            total => sum / total,
        }
    }
}

fn composed(
    hidden: [&Tensor; 2],
    output: &Linear,
    targets: &[u32],
    terms: Terms,
) -> Result<(Loss, Vec<f32>)> {
    let Terms {
        smoothing,
        consistency,
    } = terms;
    let device = hidden[0].device();
    let words = output.weight.value().dim(0)? - 1;
    let table = output.weight.value().narrow(0, 0, words)?;
    let column = Tensor::new(targets, device)?.unsqueeze(1)?;
    let smoothing = f64::from(smoothing);
    let log_p = |hidden: &Tensor| -> Result<Tensor> {
        let mut logits = hidden.matmul(&table.t()?)?; // (n, c)
        if let Some(bias) = &output.bias {
            logits = logits.broadcast_add(&bias.value().narrow(0, 0, words)?)?;
        }
        candle_nn::ops::log_softmax(&logits, D::Minus1)
    };
    let each = |log_p: &Tensor| -> Result<(Tensor, Tensor)> {
        let of_target = log_p.gather(&column, 1)?.squeeze(1)?; // (n)
        let of_all = (log_p.sum(D::Minus1)? / words as f64)?; // (n)
        let each = ((&of_target * (smoothing - 1.0))? - (of_all * smoothing)?)?;
        Ok((each, of_target))
    };
    let [p, q] = [log_p(hidden[0])?, log_p(hidden[1])?];
    let [(first, of_target), (second, _)] = [each(&p)?, each(&q)?];
    let compared = match consistency.first_is_fixed {
        true => p.detach(),
        false => p.clone(),
    };
    let divergence =
        |p: &Tensor, q: &Tensor| -> Result<Tensor> { (p.exp()? * (p - q)?)?.sum_all() };
    let divergences = [divergence(&compared, &q)?, divergence(&q, &compared)?];
    let weighted = |x: &Tensor, weight: f32| x.affine(f64::from(weight), 0.0);
    let mut sum = weighted(&first.sum_all()?, consistency.losses[0])?;
    sum = (sum + weighted(&second.sum_all()?, consistency.losses[1])?)?;
    for (divergence, weight) in divergences.iter().zip(consistency.divergences) {
        sum = (sum + weighted(divergence, weight)?)?;
    }
    let scalar = |x: &Tensor| Ok::<f64, candle_core::Error>(f64::from(x.to_scalar::<f32>()?));
    let best = p.argmax(D::Minus1)?.to_vec1::<u32>()?;
    let loss = Loss {
        smoothed: sum,
        extra: None,
        each: first.to_vec1()?,
        divergence: consistency.mean([scalar(&divergences[0])?, scalar(&divergences[1])?]),
        cross_entropy: -scalar(&of_target.sum_all()?)?,
        correct: best.iter().zip(targets).filter(|(a, b)| a == b).count(),
        tokens: targets.len(),
    };
    Ok((loss, second.to_vec1()?))
}

/// As in `loss.rs`, gradients are computed in the forward pass, while the logits are in memory.
struct ConsistencyOp {
    output: Linear,
    loss: f32,
    /// The backward pass takes them.
    gradients: Mutex<Option<Gradients>>,
}

struct Gradients {
    /// `[n, d]` of each pass
    hidden: [Buffer; 2],
    /// `[c, d]`; `None` if the table is read-only.
    table: Option<Buffer>,
    /// `[c]`; `None` if there is no bias, or if it is read-only.
    bias: Option<Buffer>,
}

impl CustomOp3 for ConsistencyOp {
    fn name(&self) -> &'static str {
        "consistency"
    }

    fn cpu_fwd(
        &self,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        Ok((CpuStorage::F32(vec![self.loss]), ().into()))
    }

    fn bwd(
        &self,
        first: &Tensor,
        second: &Tensor,
        _: &Tensor,
        _: &Tensor,
        dy: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let gradients = self
            .gradients
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .take();
        let Some(Gradients {
            hidden,
            table,
            bias,
        }) = gradients
        else {
            bail!("consistency: the backward pass runs once, and only in training")
        };
        let _time = profile::time(Part::Loss);
        let factor = dy.to_scalar::<f32>()?;
        let Linear {
            weight,
            bias: trained_bias,
        } = &self.output;
        let of_weights = [(Some(weight), table), (trained_bias.as_ref(), bias)];
        for (weight, gradient) in of_weights {
            if let (Some(weight), Some(gradient)) = (weight, gradient) {
                weight.accumulate(|sum, write| {
                    let (sum, padding) = sum.split_at_mut(gradient.len());
                    let parts = sum.par_chunks_mut(PART).zip(gradient.par_chunks(PART));
                    parts.for_each(|(sum, part)| add_scaled(sum, write, factor, part));
                    if write == Write::Over {
                        padding.fill(0.0);
                    }
                })?;
            }
        }
        let scaled = |gradient: &Buffer, like: &Tensor| {
            let mut dh = vec![0.0; gradient.len()];
            add_scaled(&mut dh, Write::Over, factor, gradient);
            cpu::like(dh, like)
        };
        let [of_first, of_second] = &hidden;
        Ok((
            Some(scaled(of_first, first)?),
            Some(scaled(of_second, second)?),
            None,
        ))
    }
}

/// Elements of one task.
const PART: usize = 1 << 14;

fn fused(
    hidden: [&Tensor; 2],
    output: &Linear,
    targets: &[u32],
    terms: Terms,
) -> Result<(Loss, Vec<f32>)> {
    let (sums, gradients) = forward(hidden, output, targets, terms)?;
    let op = ConsistencyOp {
        output: output.clone(),
        loss: sums.weighted as f32,
        gradients: Mutex::new(Some(gradients)),
    };
    let recorded = recorded_by(&[output]).value();
    let loss = Loss {
        smoothed: hidden[0].apply_op3(hidden[1], recorded, op)?,
        extra: None,
        each: sums.first,
        divergence: terms.consistency.mean(sums.divergences),
        cross_entropy: sums.plain,
        correct: sums.correct,
        tokens: targets.len(),
    };
    Ok((loss, sums.second))
}

/// Sums over tokens.
#[derive(Default)]
struct Sums {
    first: Vec<f32>,
    second: Vec<f32>,
    weighted: f64,
    divergences: [f64; 2],
    plain: f64,
    correct: usize,
}

fn forward(
    hidden: [&Tensor; 2],
    output: &Linear,
    targets: &[u32],
    terms: Terms,
) -> Result<(Sums, Gradients)> {
    let _time = profile::time(Part::Loss);
    let (n, d) = hidden[0].dims2()?;
    let words = output.weight.value().dim(0)? - 1;
    let states = [view(hidden[0])?, view(hidden[1])?];
    let table = view(output.weight.value())?;
    let table = Mat::new(&table[..words * d], words, d);
    let bias = output.bias.as_ref();
    let bias_trains = bias.is_some_and(Weight::is_trainable);
    let bias = bias.map(|bias| view(bias.value())).transpose()?;
    let bias: &[f32] = bias.as_ref().map_or(&[], |bias| &bias[..words]);
    let mut gradients = Gradients {
        hidden: [Buffer::any(n * d), Buffer::any(n * d)],
        table: output
            .weight
            .is_trainable()
            .then(|| Buffer::zeros(words * d)),
        bias: bias_trains.then(|| Buffer::zeros(words)),
    };
    let held = (rows_held(words) / 2).max(1);
    let at_once = n.div_ceil(n.div_ceil(held).max(1)).max(1); // equal parts
    let mut logits = [Buffer::any(at_once * words), Buffer::any(at_once * words)];
    let all = Threads::All;
    let ones = vec![1.0; at_once];
    let mut sums = Sums::default();
    for start in (0..n).step_by(at_once) {
        let rows = at_once.min(n - start);
        let range = start * d..(start + rows) * d;
        for (logits, states) in logits.iter_mut().zip(&states) {
            let dst = MatMut::new(&mut logits[..rows * words], rows, words);
            let states = Mat::new(&states[range.clone()], rows, d);
            product(dst, Write::Over, states, table.t(), all);
        }
        let [first, second] = &mut logits;
        let pairs = first[..rows * words]
            .par_chunks_mut(words)
            .zip(second[..rows * words].par_chunks_mut(words))
            .zip(&targets[start..start + rows]);
        let scores: Vec<Row> = pairs
            .map_init(
                || vec![0.0; words],
                |gaps, ((first, second), &target)| {
                    row(first, second, gaps, bias, target as usize, terms)
                },
            )
            .collect();
        scores.iter().for_each(|score| sums.add(score, terms));
        for (pass, (logits, states)) in logits.iter().zip(&states).enumerate() {
            let slopes = Mat::new(&logits[..rows * words], rows, words); // in the place of the logits
            let dh = &mut gradients.hidden[pass][range.clone()];
            product(MatMut::new(dh, rows, d), Write::Over, slopes, table, all);
            if let Some(dw) = &mut gradients.table {
                let states = Mat::new(&states[range.clone()], rows, d);
                let dw = MatMut::new(dw, words, d);
                product(dw, Write::Add, slopes.t(), states, all);
            }
            if let Some(db) = &mut gradients.bias {
                let (db, ones) = (MatMut::new(db, words, 1), Mat::new(&ones[..rows], rows, 1));
                product(db, Write::Add, slopes.t(), ones, all);
            }
        }
    }
    Ok((sums, gradients))
}

impl Sums {
    fn add(&mut self, row: &Row, terms: Terms) {
        let Consistency {
            losses,
            divergences,
            ..
        } = terms.consistency;
        self.first.push(row.smoothed[0]);
        self.second.push(row.smoothed[1]);
        for pass in 0..2 {
            self.weighted += f64::from(losses[pass]) * f64::from(row.smoothed[pass]);
            self.weighted += f64::from(divergences[pass]) * f64::from(row.divergences[pass]);
            self.divergences[pass] += f64::from(row.divergences[pass]);
        }
        self.plain += f64::from(row.plain);
        self.correct += usize::from(row.correct);
    }
}

/// The loss of one token.
#[derive(Clone, Copy, Default)]
struct Row {
    smoothed: [f32; 2],
    divergences: [f32; 2],
    plain: f32,
    correct: bool,
}

kernel! {
    /// The loss of one row of logits of each pass, to which the bias is added (it may be empty). The logits are replaced
    /// by their gradients. `gaps` has room for as many values.
    fn row(
        first: &mut [f32],
        second: &mut [f32],
        gaps: &mut [f32],
        bias: &[f32],
        target: usize,
        terms: Terms,
    ) -> Row {
        let Terms { smoothing, consistency: Consistency { losses, divergences, first_is_fixed } } = terms;
        first.iter_mut().zip(bias).for_each(|(logit, bias)| *logit += bias);
        second.iter_mut().zip(bias).for_each(|(logit, bias)| *logit += bias);
        let logits = first.iter().zip(&*second);
        gaps.iter_mut().zip(logits).for_each(|(gap, (p, q))| *gap = p - q);
        let highest = [simd::max(first), simd::max(second)];
        let chosen = [first[target], second[target]];
        let totals = [simd::sum(first), simd::sum(second)];
        let sums = [
            simd::exp_and_sum(first, highest[0], 1.0),
            simd::exp_and_sum(second, highest[1], 1.0),
        ];
        let logs = [highest[0] + sums[0].ln(), highest[1] + sums[1].ln()];
        let share = smoothing / first.len() as f32;
        let smoothed = |pass: usize| logs[pass] - (1.0 - smoothing) * chosen[pass] - share * totals[pass];
        // log p - log q = gap - apart
        let apart = logs[0] - logs[1];
        let forth = (simd::dot(first, gaps) / sums[0] - apart).max(0.0);
        let back = (apart - simd::dot(second, gaps) / sums[1]).max(0.0);
        // Of the gradients: what depends on p, on q, on p (log p - log q) and on q (log q - log p).
        let [kappa, reverse] = divergences;
        let free = if first_is_fixed { 0.0 } else { 1.0 };
        let of_first = [
            losses[0] + free * (reverse - kappa * (forth + apart)),
            -free * reverse,
            free * kappa,
        ];
        let of_second = [
            -kappa,
            losses[1] + kappa - reverse * (back - apart),
            -reverse,
        ];
        let inverses = [1.0 / sums[0], 1.0 / sums[1]];
        let spread = [share * losses[0], share * losses[1]];
        let values = first.iter_mut().zip(second.iter_mut()).zip(&*gaps);
        values.for_each(|((first, second), gap)| {
            let (p, q) = (*first * inverses[0], *second * inverses[1]);
            *first = p * (of_first[0] + of_first[2] * gap) + q * of_first[1] - spread[0];
            *second = q * (of_second[1] + of_second[2] * gap) + p * of_second[0] - spread[1];
        });
        first[target] -= losses[0] * (1.0 - smoothing);
        second[target] -= losses[1] * (1.0 - smoothing);
        Row {
            smoothed: [smoothed(0), smoothed(1)],
            divergences: [forth, back],
            plain: logs[0] - chosen[0],
            correct: chosen[0] >= highest[0],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, weight};

    const R_DROP: Consistency = Consistency {
        losses: [0.5, 0.5],
        divergences: [1.25, 1.25],
        first_is_fixed: false,
    };
    const CUT: Consistency = Consistency {
        losses: [1.0, 0.0],
        divergences: [3.0, 0.0],
        first_is_fixed: true,
    };

    #[test]
    fn fused_equals_composed_with_and_without_bias() {
        let both_ways = Consistency {
            first_is_fixed: false,
            ..CUT
        };
        let fixed = Consistency {
            first_is_fixed: true,
            ..R_DROP
        };
        // The last has more rows than one chunk.
        for (n, d, v) in [(1, 3, 2), (7, 10, 33), (90, 16, 1000), (700, 4, 300)] {
            let (table, bias) = (weight("table", (v, d)), weight("bias", v));
            let targets: Vec<u32> = (0..n).map(|i| (i * 5 % (v - 1)) as u32).collect();
            for (consistency, bias) in [
                (R_DROP, None),
                (CUT, Some(&bias)),
                (both_ways, None),
                (fixed, Some(&bias)),
            ] {
                let output = Linear {
                    weight: table.clone(),
                    bias: bias.cloned(),
                };
                let weights: Vec<Weight> = [&table].into_iter().chain(bias).cloned().collect();
                let case = Case::new(&weights).input((n, d)).input((n, d));
                case.check_once(|x, pass| {
                    let hidden = [&x[0], &x[1]];
                    let loss = consistent_cross_entropy(
                        hidden,
                        &output,
                        &targets,
                        0.1,
                        consistency,
                        pass,
                    )?;
                    Ok(loss.0.smoothed)
                });
            }
        }
    }

    #[test]
    fn equal_passes_do_not_diverge_and_have_the_plain_loss() -> Result<()> {
        let (table, hidden) = (weight("table", (12, 6)), weight("hidden", (40, 6)));
        let targets: Vec<u32> = (0..40).map(|i| i * 5 % 11).collect();
        let output = Linear {
            weight: table,
            bias: None,
        };
        for kernels in Kernels::ALL {
            let pass = Pass::train(kernels, 1, 1);
            let hidden = hidden.value();
            let plain = crate::cross_entropy(hidden, &output, &targets, 0.1, &pass)?;
            for consistency in [R_DROP, CUT] {
                let both = [hidden, hidden];
                let (loss, second) =
                    consistent_cross_entropy(both, &output, &targets, 0.1, consistency, &pass)?;
                assert!(loss.divergence.abs() < 1e-4, "{}", loss.divergence);
                assert!((loss.smoothed()? - plain.smoothed()?).abs() < 1e-3);
                assert!((loss.cross_entropy - plain.cross_entropy).abs() < 1e-3);
                assert_eq!(loss.correct, plain.correct);
                let apart = second.iter().zip(&plain.each).map(|(a, b)| (a - b).abs());
                assert!(apart.fold(0.0, f32::max) < 1e-5);
            }
        }
        Ok(())
    }
}
