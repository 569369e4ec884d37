use attend_ops::random::Key;
use attend_ops::{Mode, Param, Pass, Segments, Shared, Site, mix};
use candle_core::{D, Result, Tensor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Scope;
use crate::params::Init;

/// What becomes of the weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ContextKind {
    /// The mean of the values by weight.
    #[default]
    Soft,
    /// One value, drawn by weight in training and the heaviest otherwise (Xu et al. 2015, §4.1).
    Hard,
}

impl ContextKind {
    pub const ALL: [ContextKind; 2] = [ContextKind::Soft, ContextKind::Hard];
}

/// The third step: weights `[n, s]` and values `[m, d]` to contexts `[n, d]`.
pub(crate) enum Context {
    Soft,
    Hard(Hard),
}

/// A draw has no gradient, so its weights learn from how well it turned out: REINFORCE (Williams 1992).
pub(crate) struct Hard {
    site: Site,
    /// b, the loss of a token as it has been of late.
    baseline: Param,
    config: HardConfig,
}

/// How a hard context learns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HardConfig {
    /// λ of what the weights learn from their draws.
    pub(crate) reinforce: f32,
    /// λ of the entropy, which keeps the weights from settling too soon.
    pub(crate) entropy: f32,
    /// How many of training's sentences take the mean instead, from which weights learn directly.
    pub(crate) soft_share: f32,
}

/// The keys that were taken.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// One where a key was taken, else zero, `[n, s]`; the weights of a query that drew none.
    pub(crate) taken: Tensor,
    /// One for each query that drew, zero for the others, `[n]`.
    pub(crate) drew: Tensor,
    /// The log-probability of each draw, `[n]`; zero where there was none.
    pub(crate) log_p: Tensor,
    /// The entropy of each query's weights, `[n]`.
    pub(crate) entropy: Tensor,
}

impl Choice {
    /// The same with other rows.
    pub(crate) fn map(&self, f: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Self> {
        Ok(Self {
            taken: f(&self.taken)?,
            drew: f(&self.drew)?,
            log_p: f(&self.log_p)?,
            entropy: f(&self.entropy)?,
        })
    }

    /// The rows of all, one after the other.
    pub(crate) fn join(all: &[Self]) -> Result<Self> {
        let cat =
            |part: fn(&Self) -> &Tensor| Tensor::cat(&all.iter().map(part).collect::<Vec<_>>(), 0);
        Ok(Self {
            taken: cat(|choice| &choice.taken)?,
            drew: cat(|choice| &choice.drew)?,
            log_p: cat(|choice| &choice.log_p)?,
            entropy: cat(|choice| &choice.entropy)?,
        })
    }
}

impl Context {
    pub(crate) fn new(
        kind: ContextKind,
        name: &str,
        config: HardConfig,
        init: &mut Init,
    ) -> Result<Self> {
        Ok(match kind {
            ContextKind::Soft => Context::Soft,
            ContextKind::Hard => Context::Hard(Hard {
                site: Site::named(name),
                baseline: init.follower(&format!("{name}.baseline"))?,
                config,
            }),
        })
    }

    pub(crate) fn of(
        &self,
        weights: &Tensor,
        values: &Shared,
        scope: &Scope,
        pass: &Pass,
    ) -> Result<(Tensor, Option<Choice>)> {
        match self {
            Context::Soft => Ok((mix(weights, values, &scope.pairs, pass)?, None)),
            Context::Hard(hard) => {
                let choice = hard.choose(weights, scope, pass)?;
                let context = mix(&choice.taken, values, &scope.pairs, pass)?;
                Ok((context, Some(choice)))
            }
        }
    }
}

/// Keeps the logarithm of a weight of zero finite, and its gradient far from infinite.
const LEAST: f64 = 1e-7;

impl Hard {
    fn choose(&self, weights: &Tensor, scope: &Scope, pass: &Pass) -> Result<Choice> {
        let (n, s) = weights.dims2()?;
        let rows = weights.to_vec2::<f32>()?;
        let mut taken = vec![0f32; n * s];
        let mut drew = vec![1f32; n];
        let queries = scope.sentences().zip(&scope.positions);
        for (row, (weights, (sentence, &position))) in rows.iter().zip(queries).enumerate() {
            let key = match pass.mode {
                Mode::Eval => heaviest(weights),
                Mode::Train { seed, draw } => {
                    let key = Key::new(seed, draw, self.site);
                    if key.uniform(sentence as u64) < f64::from(self.config.soft_share) {
                        drew[row] = 0.0;
                        continue;
                    }
                    let uniform = key.fork(u64::from(position)).uniform(row as u64);
                    drawn(weights, uniform)
                }
            };
            taken[row * s + key] = 1.0;
        }
        let taken = Tensor::from_vec(taken, (n, s), weights.device())?;
        let drew = Tensor::new(drew, weights.device())?;
        // The weights of a Gaussian window do not add up to one.
        let total = (weights.sum_keepdim(D::Minus1)? + LEAST)?;
        let p = weights.broadcast_div(&total)?;
        let logs = (&p + LEAST)?.log()?;
        let mean = weights.broadcast_mul(&(1.0 - &drew)?.unsqueeze(1)?)?;
        Ok(Choice {
            log_p: (&taken * &logs)?.sum(D::Minus1)?,
            entropy: (p * logs)?.sum(D::Minus1)?.neg()?,
            taken: (taken + mean)?,
            drew,
        })
    }

    /// What makes the gradient of a batch's loss that of its expectation over all draws. For the tth
    /// draw of a sentence, whose tokens lost l:
    ///
    /// ∇ log p(drawₜ) · Σ over t' ≥ t of (lₜ' - b)  -  λ ∇ entropyₜ,
    ///
    /// since what came before a draw is not its doing, and b, the same for all, changes no expectation.
    /// (The loss is the cross-entropy: what later entropies or a penalty owe to a draw is left out.) And
    /// what moves b towards the mean loss of the tokens of sentences that drew.
    pub(crate) fn reinforce(
        &self,
        choice: &Choice,
        losses: &[f32],
        targets: &Segments,
    ) -> Result<Tensor> {
        let baseline = self.baseline.value().to_vec1::<f32>()?[0];
        let mut blame = vec![0f32; losses.len()];
        for range in targets.ranges() {
            let mut sum = 0.0;
            for t in range.rev() {
                sum += losses[t] - baseline;
                blame[t] = sum;
            }
        }
        let blame = Tensor::new(blame, choice.log_p.device())?;
        let score = ((&choice.log_p * blame)?.sum_all()? * f64::from(self.config.reinforce))?;
        let spread = (choice.entropy.sum_all()? * f64::from(self.config.entropy))?;
        let drew = choice.drew.to_vec1::<f32>()?;
        let lost = losses
            .iter()
            .zip(&drew)
            .map(|(l, drew)| f64::from(l * drew));
        let count = drew.iter().map(|&drew| f64::from(drew)).sum::<f64>();
        let mean = lost.sum::<f64>() / count.max(1.0);
        let distance = (self.baseline.value() - mean)?.sqr()?.sum_all()?;
        // By a tensor: candle drops the gradient of what is multiplied with the number zero.
        let half = Tensor::new(0.5 * count as f32, distance.device())?;
        (score - spread)? + (distance * half)?
    }
}

fn heaviest(weights: &[f32]) -> usize {
    let best = weights.iter().enumerate();
    let best = best.max_by(|(i, a), (j, b)| a.total_cmp(b).then(j.cmp(i)));
    best.map_or(0, |(key, _)| key)
}

/// The key on which a uniform number falls.
fn drawn(weights: &[f32], uniform: f64) -> usize {
    let total: f64 = weights.iter().map(|&w| f64::from(w)).sum();
    let mut left = uniform * total;
    for (key, &weight) in weights.iter().enumerate() {
        left -= f64::from(weight);
        if left < 0.0 {
            return key;
        }
    }
    heaviest(weights)
}

/// λ Σ over keys of (1 - Σ over queries of α)²: every word of the source should be looked at, once in all
/// (Xu et al. 2015, §4.2.1). Weights `[n, s]` to a scalar.
pub(crate) fn doubly_stochastic(
    weights: &Tensor,
    queries: &Segments,
    keys: &Segments,
    lambda: f32,
) -> Result<Tensor> {
    let device = weights.device();
    let counts = queries.lengths().iter().enumerate();
    let sentences = counts.flat_map(|(i, &count)| std::iter::repeat_n(i as u32, count));
    let sentences = Tensor::new(sentences.collect::<Vec<_>>(), device)?;
    let (b, s) = (keys.count(), weights.dim(1)?);
    let mut present = vec![0f32; b * s];
    for (row, &length) in present.chunks_exact_mut(s.max(1)).zip(keys.lengths()) {
        row[..length].fill(1.0);
    }
    let present = Tensor::from_vec(present, (b, s), device)?;
    // Minus what each key got; where there is no key, no weight.
    let missing = present.index_add(&sentences, &weights.neg()?.contiguous()?, 0)?;
    missing.sqr()?.sum_all()? * f64::from(lambda)
}
