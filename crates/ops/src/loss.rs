//! Output projection and label-smoothed cross-entropy (Szegedy et al. 2016), in chunks of rows, so
//! that the logits `[n, v]` are never held whole.
//!
//! With p = softmax(h Wᵀ) over the words but the last, which is padding, c of them:
//! loss = Σ over rows of  -(1 - ε) log p(target) - (ε / c) Σ over words of log p(word).

use std::sync::{Mutex, OnceLock};

use candle_core::{CpuStorage, CustomOp2, D, Layout, Result, Shape, Tensor, bail};

use crate::buffer::Buffer;
use crate::cpu::{self, view};
use crate::gemm::{Mat, MatMut, Threads, Write, product, product_then};
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
    /// `[c, d]`
    table: Buffer,
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
            add_scaled(words, write, factor, &gradients.table);
            if write == Write::Over {
                padding.fill(0.0);
            }
        })?;
        let mut dh = vec![0.0; gradients.hidden.len()];
        add_scaled(&mut dh, Write::Over, factor, &gradients.hidden);
        Ok((Some(cpu::like(dh, hidden)?), None))
    }
}

#[derive(Default)]
struct Sums {
    each: Vec<f32>,
    smoothed: f64,
    plain: f64,
    correct: usize,
}

/// Logits that are held at once.
const CHUNK: usize = 1 << 22;

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
    let table = Mat::new(&table[..words * d], words, d);
    let rows = (CHUNK / words).clamp(1, n.max(1));
    let mut logits = Buffer::any(rows * words);
    let mut gradients = train.then(|| Gradients {
        hidden: Buffer::any(n * d),
        table: match n {
            0 => Buffer::zeros(words * d),
            _ => Buffer::any(words * d),
        },
    });
    let mut sums = Sums::default();
    for start in (0..n).step_by(rows) {
        let rows = rows.min(n - start);
        let logits = &mut logits[..rows * words];
        let h = Mat::new(&h[start * d..(start + rows) * d], rows, d);
        let dst = MatMut::new(logits, rows, words);
        let scores: Vec<OnceLock<Row>> = vec![OnceLock::new(); rows];
        product_then(
            dst,
            Write::Over,
            h,
            table.t(),
            Threads::All,
            |row, logits| {
                let target = targets[start + row] as usize;
                let _ = scores[row].set(cross_entropy_row(logits, target, smoothing));
            },
        );
        for score in scores.iter().filter_map(OnceLock::get) {
            sums.each.push(score.smoothed);
            sums.smoothed += f64::from(score.smoothed);
            sums.plain += f64::from(score.plain);
            sums.correct += usize::from(score.correct);
        }
        if let Some(gradients) = &mut gradients {
            let slopes = Mat::new(logits, rows, words); // what the rows have become
            let dh = &mut gradients.hidden[start * d..(start + rows) * d];
            product(
                MatMut::new(dh, rows, d),
                Write::Over,
                slopes,
                table,
                Threads::All,
            );
            let dw = MatMut::new(&mut gradients.table, words, d);
            product(dw, Write::first(start == 0), slopes.t(), h, Threads::All);
        }
    }
    Ok((sums, gradients))
}

#[derive(Clone, Copy, Default)]
struct Row {
    smoothed: f32,
    plain: f32,
    correct: bool,
}

/// The loss of one row; its logits become their own gradient, p - (1 - ε) [target] - ε / c.
#[multiversion::multiversion(targets("x86_64+avx2+fma"))]
fn cross_entropy_row(logits: &mut [f32], target: usize, smoothing: f32) -> Row {
    let share = smoothing / logits.len() as f32;
    let (highest, total) = simd::max_and_sum(logits);
    let chosen = logits[target];
    let sum = simd::exp_and_sum(logits, highest, 1.0);
    let inverse = 1.0 / sum;
    logits.iter_mut().for_each(|x| *x = *x * inverse - share);
    logits[target] -= 1.0 - smoothing;
    let log_sum = highest + sum.ln();
    Row {
        smoothed: log_sum - (1.0 - smoothing) * chosen - share * total,
        plain: log_sum - chosen,
        correct: chosen >= highest,
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
        // The last has more logits than a chunk holds.
        for (n, d, v) in [(1, 3, 2), (7, 10, 33), (90, 16, 1000), (2100, 4, 2100)] {
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
