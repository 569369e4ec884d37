use attend_ops::{
    Activation, Dropout, Linear, Mask, Pairs, Param, Pass, Seen, Segments, linear_activated,
    softmax,
};
use candle_core::{D, Result, Tensor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sigmoid;
use crate::params::Init;

/// Which keys get weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AlignKind {
    /// All of the sentence.
    #[default]
    Global,
    /// Those within `window` of the target's own place: a translation that keeps the order of words
    /// (Luong et al. 2015, §3.2).
    LocalM,
    /// Those within `window` of a place that is predicted, the nearer the more (Luong et al. 2015, §3.2).
    LocalP,
}

impl AlignKind {
    pub const ALL: [AlignKind; 3] = [AlignKind::Global, AlignKind::LocalM, AlignKind::LocalP];
}

/// Who attends to whom, and who may not.
pub(crate) struct Scope {
    pub(crate) pairs: Pairs,
    pub(crate) mask: Mask,
    /// The place of each query in its own sentence.
    pub(crate) positions: Vec<u32>,
}

impl Scope {
    /// Every query of a batch to every key of its sentence.
    pub(crate) fn new(queries: &Segments, keys: &Segments, mask: Mask) -> Self {
        Self {
            positions: queries.positions(),
            pairs: Pairs {
                queries: queries.clone(),
                keys: keys.clone(),
            },
            mask,
        }
    }

    /// Queries that all stand in the same place of their sentences.
    pub(crate) fn at(position: usize, queries: Segments, keys: &Segments) -> Self {
        Self {
            positions: vec![position as u32; queries.rows()],
            pairs: Pairs {
                queries,
                keys: keys.clone(),
            },
            mask: Mask::Full,
        }
    }

    /// The sentence of each query.
    pub(crate) fn sentences(&self) -> impl Iterator<Item = usize> {
        let counts = self.pairs.queries.lengths().iter().enumerate();
        counts.flat_map(|(sentence, &count)| std::iter::repeat_n(sentence, count))
    }

    /// How many keys each query could see, of at most `reach`: padding and causality hide the others.
    fn lengths(&self, reach: usize) -> Vec<usize> {
        let lengths = self.pairs.keys.lengths();
        let queries = self.sentences().zip(&self.positions);
        queries
            .map(|(sentence, &position)| match self.mask {
                Mask::Full => lengths[sentence].min(reach),
                Mask::Causal => lengths[sentence].min(reach).min(position as usize + 1),
            })
            .collect()
    }
}

/// The second step: scores `[n, s]` to weights `[n, s]`. All masks are here.
pub(crate) enum Align {
    Global,
    Monotonic { window: usize },
    Predicted(Predicted),
}

/// p = S · σ(v · tanh(W q)) is the centre of the window, S the sentence's length; weights fall off from it
/// by a Gaussian with σ = (window / 2) eʳ. In the paper r is zero; here it is learnt from there.
pub(crate) struct Predicted {
    window: usize,
    inner: Linear,
    vector: Param,
    width: Param,
}

impl Align {
    pub(crate) fn new(
        kind: AlignKind,
        name: &str,
        width: usize,
        window: usize,
        init: &mut Init,
    ) -> Result<Self> {
        Ok(match kind {
            AlignKind::Global => Align::Global,
            AlignKind::LocalM => Align::Monotonic { window },
            AlignKind::LocalP => Align::Predicted(Predicted {
                window,
                inner: init.matrix(&format!("{name}.inner"), width, width)?,
                vector: init.vector(&format!("{name}.vector"), width)?,
                width: init.scalar(&format!("{name}.width"), 0.0)?,
            }),
        })
    }

    /// `reach` is how many keys of a sentence the score can tell apart.
    pub(crate) fn weights(
        &self,
        scores: &Tensor,
        query: &Tensor,
        scope: &Scope,
        reach: usize,
        pass: &Pass,
    ) -> Result<Tensor> {
        let lengths = scope.lengths(reach);
        match self {
            Align::Global => softmax(scores, lengths.iter().map(|&end| 0..end).collect(), pass),
            Align::Monotonic { window } => {
                let last = scope.lengths(usize::MAX).into_iter();
                let places = scope.positions.iter().zip(last);
                let centres = places
                    .map(|(&place, length)| (place as usize).min(length.saturating_sub(1)) as f32);
                softmax(scores, windows(centres, *window, &lengths), pass)
            }
            Align::Predicted(predicted) => {
                let centres = predicted.centres(query, scope, pass)?; // (n, 1)
                let places = centres.flatten_all()?.to_vec1::<f32>()?;
                let seen = windows(places.into_iter(), predicted.window, &lengths);
                softmax(scores, seen, pass)? * predicted.gaussians(&centres, scores.dim(1)?)?
            }
        }
    }
}

impl Predicted {
    fn centres(&self, query: &Tensor, scope: &Scope, pass: &Pass) -> Result<Tensor> {
        let keys = scope.pairs.keys.lengths();
        let lengths: Vec<f32> = scope.sentences().map(|i| keys[i] as f32).collect();
        let lengths = Tensor::new(lengths, query.device())?.unsqueeze(1)?;
        let inner = linear_activated(query, &self.inner, Activation::Tanh, Dropout::NONE, pass)?;
        // Not a matrix product, whose sums candle orders by the number of rows.
        let raw = inner
            .broadcast_mul(self.vector.value())?
            .sum_keepdim(D::Minus1)?;
        sigmoid(&raw)? * lengths
    }

    /// exp(-(j - p)² / 2σ²) for each column j.
    fn gaussians(&self, centres: &Tensor, s: usize) -> Result<Tensor> {
        let columns = Tensor::arange(0f32, s as f32, centres.device())?.unsqueeze(0)?;
        let distance = columns.broadcast_sub(centres)?; // (n, s)
        let deviation = self.window as f64 / 2.0;
        let scale = -0.5 / (deviation * deviation);
        let scale = ((self.width.value() * -2.0)?.exp()? * scale)?; // -1 / 2σ²
        distance.sqr()?.broadcast_mul(&scale)?.exp()
    }
}

/// The keys within `window` of each centre; the last that can be seen, if all of those are hidden.
fn windows(centres: impl Iterator<Item = f32>, window: usize, lengths: &[usize]) -> Seen {
    let window = window as f32;
    let seen = centres.zip(lengths).map(|(centre, &length)| {
        let start = (centre - window).ceil().max(0.0) as usize;
        let end = ((centre + window).floor() as usize + 1).min(length);
        start.min(end.saturating_sub(1))..end
    });
    seen.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_stay_within_the_sentence_and_are_never_empty() {
        let seen = windows([0.0, 3.4, 9.0, 4.9].into_iter(), 1, &[5, 5, 5, 5]);
        assert_eq!(seen, [0..2, 3..5, 4..5, 4..5]);
        let none = windows([2.0].into_iter(), 3, &[0]);
        assert!(none[0].is_empty());
    }
}
