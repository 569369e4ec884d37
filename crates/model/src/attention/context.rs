use attend_batch::Segments;
use attend_ops::random::Key;
use attend_ops::{Mode, Pass, Shared, Site, Weight, mix};
use candle_core::{D, Result, Tensor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Scope;
use crate::weights::Init;

/// How the context is computed from weights and values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ContextKind {
    /// The weighted mean of the values.
    #[default]
    Soft,
    /// One value: sampled by weight in training, otherwise that of greatest weight (Xu et al. 2015, §4.1).
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

/// Hard attention. Sampling has no gradient, so the weights are trained with REINFORCE (Williams 1992).
#[derive(Clone)]
pub(crate) struct Hard {
    site: Site,
    /// b, a moving average of the loss per token.
    baseline: Weight,
    config: HardConfig,
}

/// The settings of hard attention.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HardConfig {
    /// λᵣ, a factor on the REINFORCE gradient.
    pub(crate) reinforce: f32,
    /// λₑ, a factor on the entropy bonus, which keeps the weights from becoming one-hot too early.
    pub(crate) entropy: f32,
    /// The share of training sentences that use the soft context, whose weights have a direct gradient.
    pub(crate) soft_share: f32,
}

/// The keys that were selected.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// `[n, s]`: 1 for the selected key of a query and 0 for its other keys; the weights of a query with a
    /// soft context.
    pub(crate) taken: Tensor,
    /// `[n]`: 1 for a query that selected one key, 0 for a query with a soft context.
    pub(crate) drew: Tensor,
    /// `[n]`: the log-probability of the selected key; 0 for a query with a soft context.
    pub(crate) log_p: Tensor,
    /// `[n]`: the entropy of each query's weights.
    pub(crate) entropy: Tensor,
}

impl Choice {
    /// Applies a function of rows to each tensor.
    pub(crate) fn map(&self, f: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Self> {
        Ok(Self {
            taken: f(&self.taken)?,
            drew: f(&self.drew)?,
            log_p: f(&self.log_p)?,
            entropy: f(&self.entropy)?,
        })
    }

    /// Concatenates the rows.
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

/// Keeps the logarithm of a zero weight and its gradient finite.
const LEAST: f64 = 1e-7;

impl Hard {
    /// Selects a key for each query.
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
                    let random = Key::new(seed, draw, self.site);
                    let place = scope.pairs.queries.place(sentence) as u64;
                    if random.uniform(place) < f64::from(self.config.soft_share) {
                        drew[row] = 0.0;
                        continue;
                    }
                    let uniform = random.fork(u64::from(position)).uniform(place);
                    sample(weights, uniform)
                }
            };
            taken[row * s + key] = 1.0;
        }
        let taken = Tensor::from_vec(taken, (n, s), weights.device())?;
        let drew = Tensor::new(drew, weights.device())?;
        // The weights of a Gaussian window do not sum to one.
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

    /// An addition to the loss of a batch. With it, and λᵣ = 1 and λₑ = 0, the expected gradient of the sum is
    /// the gradient of the expected loss. For the key sampled at step t of a sentence, whose tokens have the
    /// losses l, its gradient is
    ///
    /// λᵣ ∇ log p(keyₜ) · Σ over t' ≥ t of (lₜ' - b)  -  λₑ ∇ entropyₜ.
    ///
    /// Losses before step t do not depend on keyₜ, and a constant b does not change the expectation. The losses
    /// are cross-entropies: the effect of keyₜ on later entropies or on a penalty is ignored.
    ///
    /// A second term, (b - mean)² · count / 2, moves b towards the mean loss of the tokens that sampled a key.
    pub(crate) fn reinforce(
        &self,
        choice: &Choice,
        losses: &[f32],
        targets: &Segments,
    ) -> Result<Tensor> {
        let baseline = self.baseline.value().to_vec1::<f32>()?[0];
        let mut returns = vec![0f32; losses.len()];
        for range in targets.ranges() {
            let mut sum = 0.0;
            for t in range.rev() {
                sum += losses[t] - baseline;
                returns[t] = sum;
            }
        }
        let returns = Tensor::new(returns, choice.log_p.device())?;
        let score = ((&choice.log_p * returns)?.sum_all()? * f64::from(self.config.reinforce))?;
        let bonus = (choice.entropy.sum_all()? * f64::from(self.config.entropy))?;
        let drew = choice.drew.to_vec1::<f32>()?;
        let sampled = losses
            .iter()
            .zip(&drew)
            .map(|(l, drew)| f64::from(l * drew));
        let count = drew.iter().map(|&drew| f64::from(drew)).sum::<f64>();
        let mean = sampled.sum::<f64>() / count.max(1.0);
        let distance = (self.baseline.value() - mean)?.sqr()?.sum_all()?;
        // A tensor, because candle drops the gradient of a product with the number zero.
        let half = Tensor::new(0.5 * count as f32, distance.device())?;
        (score - bonus)? + (distance * half)?
    }
}

/// The index of the greatest weight, the first one if there are several.
fn heaviest(weights: &[f32]) -> usize {
    let best = weights.iter().enumerate();
    let best = best.max_by(|(i, a), (j, b)| a.total_cmp(b).then(j.cmp(i)));
    best.map_or(0, |(key, _)| key)
}

/// Samples a key by weight, from a number that is uniform between 0 and 1.
fn sample(weights: &[f32], uniform: f64) -> usize {
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

/// λ Σ over keys of (1 - Σ over queries of α)²: a penalty unless the weights of each source token sum to one
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
    // 1 minus the sum of each key's weights; 0 where there is no key, which has no weight.
    let missing = present.index_add(&sentences, &weights.neg()?.contiguous()?, 0)?;
    missing.sqr()?.sum_all()? * f64::from(lambda)
}
