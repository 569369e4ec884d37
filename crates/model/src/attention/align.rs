use attend_batch::{RowNumbers, Segments};
use attend_ops::{
    Activation, Dropout, Linear, Mask, Pairs, Pass, RowDropout, Seen, Weight, linear_activated,
    softmax,
};
use candle_core::{D, Result, Tensor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sigmoid;
use crate::weights::Init;

/// Which keys of the sentence have nonzero weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AlignKind {
    /// All keys.
    #[default]
    Global,
    /// Keys within `window` of the target position, which assumes that source and target have the same word
    /// order (Luong et al. 2015, §3.2).
    LocalM,
    /// Keys within `window` of a predicted position, with weights that fall off from it (Luong et al. 2015,
    /// §3.2).
    LocalP,
}

impl AlignKind {
    pub const ALL: [AlignKind; 3] = [AlignKind::Global, AlignKind::LocalM, AlignKind::LocalP];
}

/// σ, the standard deviation of the Gaussian of [`AlignKind::LocalP`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeviationKind {
    /// window / 2 (Luong et al. 2015, §3.2).
    #[default]
    Fixed,
    /// (window / 2) eʳ, where r is learnt and begins at 0.
    Learned,
}

impl DeviationKind {
    pub const ALL: [DeviationKind; 2] = [DeviationKind::Fixed, DeviationKind::Learned];
}

/// Which queries attend to which keys, and what the mask hides.
pub(crate) struct Scope {
    pub(crate) pairs: Pairs,
    pub(crate) mask: Mask,
    /// The position of each query in its sentence.
    pub(crate) positions: Vec<u32>,
}

impl Scope {
    /// Every query of a batch attends to the keys of its sentence that the mask does not hide.
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

    /// Queries that have the same position in their sentences, as in a decoding step. Each attends to all
    /// keys of its sentence.
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

    /// The dropout of the queries.
    pub(crate) fn dropout(&self, dropout: Dropout) -> RowDropout {
        if dropout.is_none() {
            return RowDropout::NONE;
        }
        let places = self.sentences().map(|i| self.pairs.queries.place(i));
        let positions = self.positions.iter().map(|&position| position as usize);
        dropout.of_rows(RowNumbers::new(places.zip(positions)))
    }

    /// The number of keys that each query may attend to, at most `max_keys`. They are the first of its
    /// sentence; the mask and `max_keys` hide later ones.
    fn lengths(&self, max_keys: usize) -> Vec<usize> {
        let lengths = self.pairs.keys.lengths();
        let queries = self.sentences().zip(&self.positions);
        queries
            .map(|(sentence, &position)| match self.mask {
                Mask::Full => lengths[sentence].min(max_keys),
                Mask::Causal => lengths[sentence].min(max_keys).min(position as usize + 1),
            })
            .collect()
    }
}

/// The second step: scores `[n, s]` to weights `[n, s]`. Masks are applied in this step.
pub(crate) enum Align {
    Global,
    Monotonic { window: usize },
    Predicted(Predicted),
}

/// The centre of the window is p = S · sigmoid(v · tanh(W q)), where S is the length of the sentence. Weights are
/// multiplied by a Gaussian around p, whose standard deviation is that of [`DeviationKind`].
pub(crate) struct Predicted {
    window: usize,
    /// W
    inner: Linear,
    /// v
    vector: Weight,
    /// r, the parameter `width` in a checkpoint, if it is learnt.
    log_scale: Option<Weight>,
}

impl Align {
    pub(crate) fn new(
        kind: AlignKind,
        name: &str,
        width: usize,
        window: usize,
        deviation: DeviationKind,
        init: &mut Init,
    ) -> Result<Self> {
        Ok(match kind {
            AlignKind::Global => Align::Global,
            AlignKind::LocalM => Align::Monotonic { window },
            AlignKind::LocalP => Align::Predicted(Predicted {
                window,
                inner: init.matrix(&format!("{name}.inner"), width, width)?,
                vector: init.vector(&format!("{name}.vector"), width)?,
                log_scale: match deviation {
                    DeviationKind::Fixed => None,
                    DeviationKind::Learned => Some(init.scalar(&format!("{name}.width"), 0.0)?),
                },
            }),
        })
    }

    /// `max_keys` is the number of keys of a sentence that the score covers, [`Score::max_keys`].
    ///
    /// [`Score::max_keys`]: super::Score::max_keys
    pub(crate) fn weights(
        &self,
        scores: &Tensor,
        query: &Tensor,
        scope: &Scope,
        max_keys: usize,
        pass: &Pass,
    ) -> Result<Tensor> {
        let lengths = scope.lengths(max_keys);
        match self {
            Align::Global => softmax(scores, lengths.iter().map(|&end| 0..end).collect(), pass),
            Align::Monotonic { window } => {
                let visible = scope.lengths(usize::MAX).into_iter();
                let centres = scope.positions.iter().zip(visible);
                let centres = centres.map(|(&position, length)| {
                    (position as usize).min(length.saturating_sub(1)) as f32
                });
                softmax(scores, windows(centres, *window, &lengths), pass)
            }
            Align::Predicted(predicted) => {
                let centres = predicted.centres(query, scope, pass)?; // (n, 1)
                let values = centres.flatten_all()?.to_vec1::<f32>()?;
                let seen = windows(values.into_iter(), predicted.window, &lengths);
                softmax(scores, seen, pass)? * predicted.gaussians(&centres, scores.dim(1)?)?
            }
        }
    }
}

impl Predicted {
    /// p `[n, 1]`
    fn centres(&self, query: &Tensor, scope: &Scope, pass: &Pass) -> Result<Tensor> {
        let keys = scope.pairs.keys.lengths();
        let lengths: Vec<f32> = scope.sentences().map(|i| keys[i] as f32).collect();
        let lengths = Tensor::new(lengths, query.device())?.unsqueeze(1)?;
        let (tanh, none) = (Activation::Tanh, RowDropout::NONE);
        let inner = linear_activated(query, &self.inner, tanh, &none, pass)?;
        // Not a matrix product, in which candle's summation order depends on the number of rows.
        let raw = inner
            .broadcast_mul(self.vector.value())?
            .sum_keepdim(D::Minus1)?;
        sigmoid(&raw)? * lengths
    }

    /// exp(-(j - p)² / 2σ²) for each column j, `[n, s]`, where σ is the standard deviation.
    fn gaussians(&self, centres: &Tensor, s: usize) -> Result<Tensor> {
        let columns = Tensor::arange(0f32, s as f32, centres.device())?.unsqueeze(0)?;
        let distance = columns.broadcast_sub(centres)?; // (n, s)
        let deviation = self.window as f64 / 2.0;
        let scale = -0.5 / (deviation * deviation); // -1 / 2σ²
        let Some(log_scale) = &self.log_scale else {
            return (distance.sqr()? * scale)?.exp();
        };
        let scale = ((log_scale.value() * -2.0)?.exp()? * scale)?;
        distance.sqr()?.broadcast_mul(&scale)?.exp()
    }
}

/// The range of visible keys within `window` of each centre. If all keys in the window are hidden, the last
/// visible key. `lengths` are the numbers of visible keys.
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
    fn windows_are_within_the_sentence_and_empty_only_if_it_is() {
        let seen = windows([0.0, 3.4, 9.0, 4.9].into_iter(), 1, &[5, 5, 5, 5]);
        assert_eq!(seen, [0..2, 3..5, 4..5, 4..5]);
        let none = windows([2.0].into_iter(), 3, &[0]);
        assert!(none[0].is_empty());
    }
}
