//! Output projection and label-smoothed cross-entropy (Szegedy et al. 2016), in chunks of rows, so
//! that the logits `[n, v]` are never held whole.
//!
//! With p = softmax(h Wᵀ) over the words but the last, which is padding, c of them:
//! loss = Σ over rows of  -(1 - ε) log p(target) - (ε / c) Σ over words of log p(word).

use std::sync::{Mutex, OnceLock};

use candle_core::{CpuStorage, CustomOp2, D, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use crate::buffer::Buffer;
use crate::cpu::{self, view};
use crate::gemm::{DEPTH, Mat, MatMut, Threads, Write, product, product_then};
use crate::param::{Param, backward};
use crate::pass::{Pass, Path};
use crate::profile::{self, Part};
use crate::simd::{self, add_scaled};

/// A loss and what it was measured on.
#[derive(Debug)]
pub struct Loss {
    /// The smoothed cross-entropy, summed over tokens: a scalar to backpropagate from.
    smoothed: Tensor,
    /// What is minimised with it.
    extra: Option<Tensor>,
    /// The smoothed cross-entropy of each token.
    pub each: Vec<f32>,
    /// The plain cross-entropy, summed over tokens; what perplexity is made of.
    pub cross_entropy: f64,
    /// Tokens whose most likely word was the target.
    pub correct: usize,
    pub tokens: usize,
}

impl Loss {
    /// The smoothed cross-entropy, summed over tokens.
    pub fn smoothed(&self) -> Result<f32> {
        self.smoothed.to_scalar()
    }

    /// What is minimised together with it, summed over tokens.
    pub fn extra(&self) -> Result<f32> {
        match &self.extra {
            Some(extra) => extra.to_scalar(),
            None => Ok(0.0),
        }
    }

    /// The same loss, to be minimised together with `extra`, a scalar that no measure shows.
    pub fn with(self, extra: Tensor) -> Self {
        let extra = Some(extra);
        Self { extra, ..self }
    }

    /// Adds `scale` times the gradient with respect to each parameter to the parameter's buffer.
    ///
    /// It takes the loss with it: the graph gives up its memory as backward passes, so it can be
    /// gone through once.
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

/// The loss of hidden states `[n, d]` against `targets` `[n]`, with `table` `[v, d]` as the output
/// matrix.
pub fn cross_entropy(
    hidden: &Tensor,
    table: &Param,
    targets: &[u32],
    smoothing: f32,
    pass: &Pass,
) -> Result<Loss> {
    let (n, _) = hidden.dims2()?;
    let words = table.value().dim(0)? - 1;
    if n != targets.len() {
        bail!("{n} hidden states for {} targets", targets.len());
    }
    if let Some(target) = targets.iter().find(|&&target| target as usize >= words) {
        bail!("target {target} is not among {words} words");
    }
    if pass.path == Path::Composed {
        return composed(hidden, table, targets, smoothing, pass);
    }
    let (sums, gradients) = forward(hidden, table, targets, smoothing, pass.trains())?;
    let op = Fused {
        table: table.clone(),
        loss: sums.smoothed as f32,
        gradients: Mutex::new(gradients),
    };
    let smoothed = if pass.trains() {
        hidden.apply_op2(table.value(), op)?
    } else {
        hidden.apply_op2_no_bwd(table.value(), &op)?
    };
    Ok(Loss {
        smoothed,
        extra: None,
        each: sums.each,
        cross_entropy: sums.plain,
        correct: sums.correct,
        tokens: n,
    })
}

fn composed(
    hidden: &Tensor,
    table: &Param,
    targets: &[u32],
    smoothing: f32,
    pass: &Pass,
) -> Result<Loss> {
    let device = hidden.device();
    let words = table.value().dim(0)? - 1;
    let (hidden, table) = if pass.trains() {
        (hidden.clone(), table.value().clone())
    } else {
        (hidden.detach(), table.value().detach())
    };
    let logits = hidden.matmul(&table.narrow(0, 0, words)?.t()?)?; // (n, c)
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
        cross_entropy: -f64::from(of_target.to_scalar::<f32>()?),
        correct: best.iter().zip(targets).filter(|(a, b)| a == b).count(),
        tokens: targets.len(),
    })
}

/// The gradients are computed along with the loss, while a chunk of the logits is there. They are
/// kept apart from the parameter's buffer until backward comes and says by what to scale them.
struct Fused {
    table: Param,
    loss: f32,
    /// Backward takes them, so that they are not held while it goes on.
    gradients: Mutex<Option<Gradients>>,
}

struct Gradients {
    /// `[n, d]`
    hidden: Buffer,
    /// `[c, d]`, but for what smoothing takes from each of its rows
    table: Buffer,
    /// `[d]`
    smoothing: Vec<f32>,
}

impl Gradients {
    fn new(n: usize, d: usize, words: usize) -> Self {
        let table = match n {
            0 => Buffer::zeros(words * d),
            _ => Buffer::any(words * d),
        };
        Self {
            hidden: Buffer::any(n * d),
            table,
            smoothing: vec![0.0; d],
        }
    }
}

impl CustomOp2 for Fused {
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
            bail!("a loss goes backward once, and only in training")
        };
        let _time = profile::time(Part::Loss);
        let factor = dy.to_scalar::<f32>()?;
        self.table.accumulate(|sum, write| {
            let (words, padding) = sum.split_at_mut(gradients.table.len());
            let smoothing = &gradients.smoothing;
            let rows = words.par_chunks_mut(ROWS * smoothing.len());
            let rows = rows.zip(gradients.table.par_chunks(ROWS * smoothing.len()));
            rows.for_each(|(sums, rows)| add_rows(sums, write, factor, rows, smoothing));
            if write == Write::Over {
                padding.fill(0.0);
            }
        })?;
        let mut dh = vec![0.0; gradients.hidden.len()];
        add_scaled(&mut dh, Write::Over, factor, &gradients.hidden);
        Ok((Some(cpu::like(dh, hidden)?), None))
    }
}

/// sums (=|+=) factor · (rows - less), row by row.
#[multiversion::multiversion(targets("x86_64+avx2+fma"))]
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

/// Rows whose logits are held at once, at most: as many as a product takes in one pass as its inner index,
/// so that the gradient of the table is gone through once for all of them.
const ROWS: usize = DEPTH;
/// Logits that are held at once, at most.
const LOGITS: usize = 1 << 24;

fn rows_held(words: usize) -> usize {
    ROWS.min(LOGITS / words.max(1)).max(1)
}

/// How many logits a loss over so many words holds at once, at most.
pub fn logits_held(words: usize) -> usize {
    words * rows_held(words)
}

fn forward(
    hidden: &Tensor,
    table: &Param,
    targets: &[u32],
    smoothing: f32,
    train: bool,
) -> Result<(Sums, Option<Gradients>)> {
    let _time = profile::time(Part::Loss);
    let (n, d) = hidden.dims2()?;
    let words = table.value().dim(0)? - 1;
    let (h, table) = (view(hidden)?, view(table.value())?);
    let share = smoothing / words as f32;
    let mut of_words = Buffer::zeros(d); // the sum of the table's rows: h times it sums a row of logits
    if smoothing != 0.0 {
        simd::column_sums(&table[..words * d], d, &mut of_words, Write::Over);
    }
    let table = Mat::new(&table[..words * d], words, d);
    let at_once = n.div_ceil(n.div_ceil(rows_held(words)).max(1)).max(1); // equal parts
    let mut logits = Buffer::any(at_once * words);
    let mut gradients = train.then(|| Gradients::new(n, d, words));
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
            let total = simd::dot(&states[row * d..][..d], &of_words);
            let score = cross_entropy_row(logits, target, smoothing, total);
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
        let slopes = Mat::new(logits, rows, words); // what the rows have become
        let dh = &mut gradients.hidden[start * d..(start + rows) * d];
        let dst = MatMut::new(dh, rows, d);
        product_then(dst, Write::Over, slopes, table, all, |row, dh| {
            let inverse = scores[row].inverse;
            let values = dh.iter_mut().zip(&*of_words);
            values.for_each(|(dh, of_words)| *dh = *dh * inverse - share * of_words);
        });
        let mut scaled = Buffer::copy_of(states);
        for (row, score) in scaled.chunks_exact_mut(d).zip(&scores) {
            row.iter_mut().for_each(|h| *h *= score.inverse);
        }
        let dw = MatMut::new(&mut gradients.table, words, d);
        let (write, scaled) = (Write::first(start == 0), Mat::new(&scaled, rows, d));
        product(dw, write, slopes.t(), scaled, all);
    }
    if let Some(gradients) = &mut gradients {
        let mut of_states = Buffer::any(d);
        simd::column_sums(&h, d, &mut of_states, Write::Over);
        gradients.smoothing = of_states.iter().map(|sum| share * sum).collect();
    }
    Ok((sums, gradients))
}

#[derive(Clone, Copy, Default)]
struct Row {
    smoothed: f32,
    plain: f32,
    correct: bool,
    /// What the row of slopes is to be multiplied by.
    inverse: f32,
}

/// The loss of one row of logits, `total` together. They become their own gradient but for smoothing's
/// ε / c, and times Σ exp, by which it is cheaper to divide what is computed from them:
/// (p - (1 - ε) [target]) Σ exp.
#[multiversion::multiversion(targets("x86_64+avx2+fma"))]
fn cross_entropy_row(logits: &mut [f32], target: usize, smoothing: f32, total: f32) -> Row {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, param};
    use candle_core::Device;

    fn targets(n: usize, words: usize) -> Vec<u32> {
        (0..n).map(|i| (i * 5 % words) as u32).collect()
    }

    #[test]
    fn fused_equals_composed_with_and_without_smoothing() {
        // The last has more rows than are held at once.
        for (n, d, v) in [(1, 3, 2), (7, 10, 33), (90, 16, 1000), (1100, 4, 300)] {
            let table = param("table", (v, d));
            let targets = targets(n, v - 1);
            for smoothing in [0.0, 0.1] {
                let case = Case::new(std::slice::from_ref(&table)).input((n, d));
                case.check_once(|x, pass| {
                    Ok(cross_entropy(&x[0], &table, &targets, smoothing, pass)?.smoothed)
                });
            }
        }
    }

    #[test]
    fn however_many_words_there_are_no_more_logits_are_held_than_the_limit() {
        for words in [1, 8000, 32_768, 40_000, LOGITS] {
            assert!((words..=LOGITS).contains(&logits_held(words)), "{words}");
        }
    }

    #[test]
    fn both_paths_count_the_same_and_evaluation_leaves_no_gradient() -> Result<()> {
        let (table, hidden) = (param("table", (12, 6)), param("hidden", (40, 6)));
        let targets = targets(40, 11);
        let run = |path| cross_entropy(hidden.value(), &table, &targets, 0.1, &Pass::eval(path));
        let (fused, composed) = (run(Path::Fused)?, run(Path::Composed)?);
        assert_eq!((fused.correct, fused.tokens), (composed.correct, 40));
        let difference = fused.cross_entropy - composed.cross_entropy;
        assert!(difference.abs() < 1e-4, "{difference}");
        for loss in [fused, composed] {
            loss.backward(1.0, [&table])?;
        }
        assert!(table.gradient().is_none());
        Ok(())
    }

    #[test]
    fn huge_logits_give_a_finite_loss() -> Result<()> {
        let table = Param::new(
            "table",
            &Tensor::new(&[[1e4f32], [-1e4], [0.0]], &Device::Cpu)?,
        )?;
        let hidden = Tensor::new(&[[1.0f32], [-1.0]], &Device::Cpu)?;
        for path in Path::ALL {
            let loss = cross_entropy(&hidden, &table, &[1, 1], 0.1, &Pass::train(path, 0, 0))?;
            let smoothed = loss.smoothed()?;
            // 0.95 · 20000 for the first row and 0.05 · 20000 for the second.
            assert!((smoothed - 20_000.0).abs() < 0.1, "{smoothed}");
        }
        Ok(())
    }
}
