//! Output projection and label-smoothed cross-entropy (Szegedy et al. 2016), in chunks of rows, so
//! that the logits `[n, v]` are never in memory as a whole.
//!
//! With p = softmax(h Wᵀ + b) over the c words other than the last, which is padding (b is optional):
//! loss = Σ over rows of  -(1 - ε) log p(target) - (ε / c) Σ over words of log p(word).

use std::sync::{Mutex, OnceLock};

use candle_core::{CpuStorage, CustomOp2, D, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use crate::Weight;
use crate::buffer::Buffer;
use crate::cpu::{self, view};
use crate::gemm::{DEPTH, Mat, MatMut, Threads, Write, product, product_then};
use crate::isa::kernel;
use crate::linear::{Linear, recorded_by};
use crate::param::{Param, backward};
use crate::pass::{Kernels, Pass};
use crate::profile::{self, Part};
use crate::simd::{self, add_scaled};

/// A loss with its statistics.
#[derive(Debug)]
pub struct Loss {
    /// The smoothed cross-entropy, summed over tokens: a scalar to backpropagate from.
    pub(crate) smoothed: Tensor,
    /// A further term to minimise.
    pub(crate) extra: Option<Tensor>,
    /// The smoothed cross-entropy of each token.
    pub each: Vec<f32>,
    /// How far two passes differ, summed over tokens: see [`crate::consistent_cross_entropy`]. Part of the loss.
    pub divergence: f64,
    /// The cross-entropy without smoothing, summed over tokens. Perplexity is computed from it.
    pub cross_entropy: f64,
    /// Tokens whose most probable word is the target.
    pub correct: usize,
    pub tokens: usize,
}

impl Loss {
    /// The smoothed cross-entropy, summed over tokens.
    pub fn smoothed(&self) -> Result<f32> {
        self.smoothed.to_scalar()
    }

    #[cfg(test)]
    pub(crate) fn smoothed_tensor(&self) -> &Tensor {
        &self.smoothed
    }

    /// The further term to minimise, summed over tokens.
    pub fn extra(&self) -> Result<f32> {
        match &self.extra {
            Some(extra) => extra.to_scalar(),
            None => Ok(0.0),
        }
    }

    /// The same loss with `extra`, a further scalar to minimise. It is not part of the statistics.
    pub fn with(self, extra: Tensor) -> Self {
        let extra = Some(extra);
        Self { extra, ..self }
    }

    /// Adds `scale` times the gradient with respect to each parameter to the parameter's buffer.
    ///
    /// Consumes the loss: the backward pass frees the memory of the graph, so it can run only once.
    pub fn backward<'a>(
        self,
        scale: f64,
        params: impl IntoIterator<Item = &'a Param>,
    ) -> Result<()> {
        let sum = match self.extra {
            Some(extra) => (self.smoothed + extra)?,
            None => self.smoothed,
        };
        backward(&(sum * scale)?, params)
    }
}

/// The loss of hidden states `[n, d]` against `targets` `[n]`, with the output matrix `[v, d]` and bias `[v]` of
/// `output`.
pub fn cross_entropy(
    hidden: &Tensor,
    output: &Linear,
    targets: &[u32],
    smoothing: f32,
    pass: &Pass,
) -> Result<Loss> {
    check_targets(hidden, output, targets)?;
    if pass.kernels == Kernels::Composed {
        return composed(hidden, output, targets, smoothing, pass);
    }
    let (sums, gradients) = forward(hidden, output, targets, smoothing, pass.trains())?;
    let op = CrossEntropyOp {
        output: output.clone(),
        loss: sums.smoothed as f32,
        gradients: Mutex::new(gradients),
    };
    let recorded = recorded_by(&[output]).value();
    let smoothed = if pass.trains() {
        hidden.apply_op2(recorded, op)?
    } else {
        hidden.apply_op2_no_bwd(recorded, &op)?
    };
    Ok(Loss {
        smoothed,
        extra: None,
        each: sums.each,
        divergence: 0.0,
        cross_entropy: sums.plain,
        correct: sums.correct,
        tokens: targets.len(),
    })
}

/// One target for each hidden state, and all of them words.
pub(crate) fn check_targets(hidden: &Tensor, output: &Linear, targets: &[u32]) -> Result<()> {
    let (n, _) = hidden.dims2()?;
    let words = output.weight.value().dim(0)? - 1;
    if n != targets.len() {
        bail!("{n} hidden states but {} targets", targets.len());
    }
    if let Some(target) = targets.iter().find(|&&target| target as usize >= words) {
        bail!("target {target} is outside a vocabulary of {words} words");
    }
    Ok(())
}

fn composed(
    hidden: &Tensor,
    output: &Linear,
    targets: &[u32],
    smoothing: f32,
    pass: &Pass,
) -> Result<Loss> {
    let device = hidden.device();
    let words = output.weight.value().dim(0)? - 1;
    let used = |tensor: &Tensor| match pass.trains() {
        true => tensor.clone(),
        false => tensor.detach(),
    };
    let table = used(output.weight.value()).narrow(0, 0, words)?;
    let mut logits = used(hidden).matmul(&table.t()?)?; // (n, c)
    if let Some(bias) = &output.bias {
        logits = logits.broadcast_add(&used(bias.value()).narrow(0, 0, words)?)?;
    }
    let log_p = candle_nn::ops::log_softmax(&logits, D::Minus1)?;
    let column = Tensor::new(targets, device)?.unsqueeze(1)?;
    let of_target = log_p.gather(&column, 1)?.squeeze(1)?; // (n)
    let of_all = (log_p.sum(D::Minus1)? / words as f64)?; // (n)
    let smoothing = f64::from(smoothing);
    let each = ((&of_target * (smoothing - 1.0))? - (of_all * smoothing)?)?;
    let of_target = of_target.sum_all()?;
    let best = logits.argmax(D::Minus1)?.to_vec1::<u32>()?;
    Ok(Loss {
        smoothed: each.sum_all()?,
        extra: None,
        each: each.to_vec1()?,
        divergence: 0.0,
        cross_entropy: -f64::from(of_target.to_scalar::<f32>()?),
        correct: best.iter().zip(targets).filter(|(a, b)| a == b).count(),
        tokens: targets.len(),
    })
}

/// The gradients are computed in the forward pass, while a chunk of the logits is in memory. The backward
/// pass scales them and adds them to the buffers of the table and the bias.
struct CrossEntropyOp {
    output: Linear,
    loss: f32,
    /// The backward pass takes them, so that they are freed early.
    gradients: Mutex<Option<Gradients>>,
}

struct Gradients {
    /// `[n, d]`
    hidden: Buffer,
    /// `None` if the table is read-only.
    table: Option<TableGradient>,
    /// `[c]`; `None` if there is no bias, or if it is read-only.
    bias: Option<Buffer>,
}

struct TableGradient {
    /// `[c, d]`, without the term of smoothing, which is the same for every row
    words: Buffer,
    /// `[d]`
    smoothing: Vec<f32>,
}

impl TableGradient {
    fn new(n: usize, d: usize, words: usize) -> Self {
        let words = match n {
            0 => Buffer::zeros(words * d),
            _ => Buffer::any(words * d),
        };
        Self {
            words,
            smoothing: vec![0.0; d],
        }
    }
}

impl CustomOp2 for CrossEntropyOp {
    fn name(&self) -> &'static str {
        "cross-entropy"
    }

    fn cpu_fwd(
        &self,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        Ok((CpuStorage::F32(vec![self.loss]), ().into()))
    }

    fn bwd(
        &self,
        hidden: &Tensor,
        _: &Tensor,
        _: &Tensor,
        dy: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let gradients = self
            .gradients
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .take();
        let Some(gradients) = gradients else {
            bail!("cross-entropy: the backward pass runs once, and only in training")
        };
        let _time = profile::time(Part::Loss);
        let factor = dy.to_scalar::<f32>()?;
        if let Some(TableGradient { words, smoothing }) = &gradients.table {
            self.output.weight.accumulate(|sum, write| {
                let (sum, padding) = sum.split_at_mut(words.len());
                let rows = sum.par_chunks_mut(LOSS_ROWS * smoothing.len());
                let rows = rows.zip(words.par_chunks(LOSS_ROWS * smoothing.len()));
                rows.for_each(|(sums, rows)| add_rows(sums, write, factor, rows, smoothing));
                if write == Write::Over {
                    padding.fill(0.0);
                }
            })?;
        }
        if let (Some(of_bias), Some(bias)) = (&gradients.bias, &self.output.bias) {
            bias.accumulate(|sum, write| {
                let (sum, padding) = sum.split_at_mut(of_bias.len());
                add_scaled(sum, write, factor, of_bias);
                if write == Write::Over {
                    padding.fill(0.0);
                }
            })?;
        }
        let mut dh = vec![0.0; gradients.hidden.len()];
        add_scaled(&mut dh, Write::Over, factor, &gradients.hidden);
        Ok((Some(cpu::like(dh, hidden)?), None))
    }
}

kernel! {
    /// sums (=|+=) factor · (rows - less), row by row.
    fn add_rows(sums: &mut [f32], write: Write, factor: f32, rows: &[f32], less: &[f32]) {
        let d = less.len();
        for (sums, row) in sums.chunks_exact_mut(d).zip(rows.chunks_exact(d)) {
            let values = sums.iter_mut().zip(row.iter().zip(less));
            match write {
                Write::Over => values.for_each(|(sum, (x, less))| *sum = factor * (x - less)),
                Write::Add => values.for_each(|(sum, (x, less))| *sum += factor * (x - less)),
            }
        }
    }
}

#[derive(Default)]
struct Sums {
    each: Vec<f32>,
    smoothed: f64,
    plain: f64,
    correct: usize,
}

impl Sums {
    fn add(&mut self, row: &Row) {
        self.each.push(row.smoothed);
        self.smoothed += f64::from(row.smoothed);
        self.plain += f64::from(row.plain);
        self.correct += usize::from(row.correct);
    }
}

/// The most rows whose logits are in memory at once. It is the inner index of one pass of a product, so
/// that a chunk adds to the gradient of the table in a single pass.
const LOSS_ROWS: usize = DEPTH;
/// The most logits in memory at once.
const LOGITS: usize = 1 << 24;

pub(crate) fn rows_held(words: usize) -> usize {
    LOSS_ROWS.min(LOGITS / words.max(1)).max(1)
}

/// The most logits that a loss over so many words holds in memory at once.
pub fn logits_held(words: usize) -> usize {
    words * rows_held(words)
}

fn forward(
    hidden: &Tensor,
    output: &Linear,
    targets: &[u32],
    smoothing: f32,
    train: bool,
) -> Result<(Sums, Option<Gradients>)> {
    let _time = profile::time(Part::Loss);
    let (n, d) = hidden.dims2()?;
    let words = output.weight.value().dim(0)? - 1;
    let trainable = output.weight.is_trainable();
    let (h, table) = (view(hidden)?, view(output.weight.value())?);
    let bias = output.bias.as_ref();
    let bias_trainable = bias.is_some_and(Weight::is_trainable);
    let bias = bias.map(|bias| view(bias.value())).transpose()?;
    let bias: &[f32] = bias.as_ref().map_or(&[], |bias| &bias[..words]);
    let of_bias: f32 = bias.iter().sum();
    let share = smoothing / words as f32;
    let mut of_words = Buffer::zeros(d); // the sum of the table's rows: its product with h is the sum of a row of logits
    if smoothing != 0.0 {
        simd::column_sums(&table[..words * d], d, &mut of_words, Write::Over);
    }
    let table = Mat::new(&table[..words * d], words, d);
    let at_once = n.div_ceil(n.div_ceil(rows_held(words)).max(1)).max(1); // equal parts
    let mut logits = Buffer::any(at_once * words);
    let mut gradients = train.then(|| Gradients {
        hidden: Buffer::any(n * d),
        table: trainable.then(|| TableGradient::new(n, d, words)),
        bias: bias_trainable.then(|| Buffer::zeros(words)),
    });
    let mut sums = Sums::default();
    for start in (0..n).step_by(at_once) {
        let rows = at_once.min(n - start);
        let logits = &mut logits[..rows * words];
        let states = &h[start * d..(start + rows) * d];
        let dst = MatMut::new(logits, rows, words);
        let scores: Vec<OnceLock<Row>> = vec![OnceLock::new(); rows];
        let (a, all) = (Mat::new(states, rows, d), Threads::All);
        product_then(dst, Write::Over, a, table.t(), all, |row, logits| {
            let target = targets[start + row] as usize;
            let total = simd::dot(&states[row * d..][..d], &of_words) + of_bias;
            let score = cross_entropy_row(logits, bias, target, smoothing, total);
            let _ = scores[row].set(score);
        });
        let scores: Vec<Row> = scores
            .into_iter()
            .filter_map(OnceLock::into_inner)
            .collect();
        scores.iter().for_each(|score| sums.add(score));
        let Some(gradients) = &mut gradients else {
            continue;
        };
        let slopes = Mat::new(logits, rows, words); // `cross_entropy_row` has replaced the logits
        let dh = &mut gradients.hidden[start * d..(start + rows) * d];
        let dst = MatMut::new(dh, rows, d);
        product_then(dst, Write::Over, slopes, table, all, |row, dh| {
            let inverse = scores[row].inverse;
            let values = dh.iter_mut().zip(&*of_words);
            values.for_each(|(dh, of_words)| *dh = *dh * inverse - share * of_words);
        });
        if let Some(of_bias) = &mut gradients.bias {
            let inverses: Vec<f32> = scores.iter().map(|score| score.inverse).collect();
            let (db, inverses) = (MatMut::new(of_bias, words, 1), Mat::new(&inverses, rows, 1));
            product(db, Write::Add, slopes.t(), inverses, all);
        }
        let Some(of_table) = &mut gradients.table else {
            continue;
        };
        let mut scaled = Buffer::copy_of(states);
        for (row, score) in scaled.chunks_exact_mut(d).zip(&scores) {
            row.iter_mut().for_each(|h| *h *= score.inverse);
        }
        let dw = MatMut::new(&mut of_table.words, words, d);
        let (write, scaled) = (Write::first(start == 0), Mat::new(&scaled, rows, d));
        product(dw, write, slopes.t(), scaled, all);
    }
    if let Some(of_bias) = gradients.as_mut().and_then(|all| all.bias.as_mut()) {
        of_bias.iter_mut().for_each(|db| *db -= share * n as f32);
    }
    if let Some(of_table) = gradients.as_mut().and_then(|all| all.table.as_mut()) {
        let mut of_states = Buffer::any(d);
        simd::column_sums(&h, d, &mut of_states, Write::Over);
        of_table.smoothing = of_states.iter().map(|sum| share * sum).collect();
    }
    Ok((sums, gradients))
}

#[derive(Clone, Copy, Default)]
struct Row {
    smoothed: f32,
    plain: f32,
    correct: bool,
    /// The factor of the row of slopes.
    inverse: f32,
}

kernel! {
    /// The loss of one row of logits, to which the bias is added (it may be empty); `total` is their sum then.
    /// The logits are replaced by their gradient without
    /// the term ε / c of smoothing, and times Σ exp: `(p - (1 - ε) [target]) Σ exp`. It is cheaper to divide
    /// the results of the products by Σ exp.
    fn cross_entropy_row(logits: &mut [f32], bias: &[f32], target: usize, smoothing: f32, total: f32) -> Row {
        logits.iter_mut().zip(bias).for_each(|(logit, bias)| *logit += bias);
        let share = smoothing / logits.len() as f32;
        let (highest, chosen) = (simd::max(logits), logits[target]);
        let sum = simd::exp_and_sum(logits, highest, 1.0);
        logits[target] -= (1.0 - smoothing) * sum;
        let log_sum = highest + sum.ln();
        Row {
            smoothed: log_sum - (1.0 - smoothing) * chosen - share * total,
            plain: log_sum - chosen,
            correct: chosen >= highest,
            inverse: 1.0 / sum,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, weight};
    use candle_core::Device;

    fn output(table: &Weight, bias: Option<&Weight>) -> Linear {
        Linear {
            weight: table.clone(),
            bias: bias.cloned(),
        }
    }

    fn targets(n: usize, words: usize) -> Vec<u32> {
        (0..n).map(|i| (i * 5 % words) as u32).collect()
    }

    #[test]
    fn fused_equals_composed_with_and_without_smoothing_and_bias() {
        // The last has more rows than one chunk.
        for (n, d, v) in [(1, 3, 2), (7, 10, 33), (90, 16, 1000), (1100, 4, 300)] {
            let (table, bias) = (weight("table", (v, d)), weight("bias", v));
            let targets = targets(n, v - 1);
            for (smoothing, bias) in [
                (0.0, None),
                (0.1, None),
                (0.0, Some(&bias)),
                (0.1, Some(&bias)),
            ] {
                let output = output(&table, bias);
                let weights: Vec<Weight> = [&table].into_iter().chain(bias).cloned().collect();
                let case = Case::new(&weights).input((n, d));
                case.check_once(|x, pass| {
                    Ok(cross_entropy(&x[0], &output, &targets, smoothing, pass)?.smoothed)
                });
            }
        }
    }

    #[test]
    fn the_number_of_logits_in_memory_stays_within_the_limit() {
        for words in [1, 8000, 32_768, 40_000, LOGITS] {
            assert!((words..=LOGITS).contains(&logits_held(words)), "{words}");
        }
    }

    #[test]
    fn both_kernels_count_the_same_and_evaluation_gives_no_gradient() -> Result<()> {
        let (table, hidden) = (weight("table", (12, 6)), weight("hidden", (40, 6)));
        let targets = targets(40, 11);
        let output = output(&table, None);
        let run =
            |kernels| cross_entropy(hidden.value(), &output, &targets, 0.1, &Pass::eval(kernels));
        let (fused, composed) = (run(Kernels::Fused)?, run(Kernels::Composed)?);
        assert_eq!((fused.correct, fused.tokens), (composed.correct, 40));
        let difference = fused.cross_entropy - composed.cross_entropy;
        assert!(difference.abs() < 1e-4, "{difference}");
        for loss in [fused, composed] {
            loss.backward(1.0, table.param())?;
        }
        assert!(table.param().unwrap().gradient().is_none());
        Ok(())
    }

    #[test]
    fn huge_logits_give_a_finite_loss() -> Result<()> {
        let table = Tensor::new(&[[1e4f32], [-1e4], [0.0]], &Device::Cpu)?;
        let table: Weight = Param::new("table", &table)?.into();
        let output = output(&table, None);
        let hidden = Tensor::new(&[[1.0f32], [-1.0]], &Device::Cpu)?;
        for kernels in Kernels::ALL {
            let loss = cross_entropy(&hidden, &output, &[1, 1], 0.1, &Pass::train(kernels, 0, 0))?;
            let smoothed = loss.smoothed()?;
            // 0.95 · 20000 for the first row and 0.05 · 20000 for the second.
            assert!((smoothed - 20_000.0).abs() < 0.1, "{smoothed}");
        }
        Ok(())
    }
}
