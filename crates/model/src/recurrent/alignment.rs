use attend_batch::Segments;
use candle_core::{DType, Result, Tensor};

use crate::Penalty;
use crate::attention::{Choice, Hard, doubly_stochastic};

/// How the tokens of a target attended to their sources.
pub(super) struct Alignment {
    /// `[n, s]`: a column for each token of the sentence's source.
    pub(super) weights: Tensor,
    /// Which key each query took, if the context is hard.
    pub(super) choice: Option<Choice>,
    /// The source's sentences.
    pub(super) keys: Segments,
}

/// What a recurrent model minimises in addition to the cross-entropy: the doubly stochastic penalty, and what a
/// hard context learns from its draws.
pub(super) struct AttentionPenalty {
    pub(super) alignment: Alignment,
    /// λ of [`doubly_stochastic`].
    pub(super) doubly_stochastic: f32,
    pub(super) hard: Option<Hard>,
}

impl Penalty for AttentionPenalty {
    fn of(&self, losses: &[f32], target: &Segments) -> Result<Tensor> {
        let Alignment {
            weights,
            choice,
            keys,
        } = &self.alignment;
        let mut sum = Tensor::zeros((), DType::F32, weights.device())?;
        if self.doubly_stochastic > 0.0 {
            let lambda = self.doubly_stochastic;
            sum = (sum + doubly_stochastic(weights, target, keys, lambda)?)?;
        }
        if let (Some(hard), Some(choice)) = (&self.hard, choice) {
            sum = (sum + hard.reinforce(choice, losses, target)?)?;
        }
        Ok(sum)
    }
}
