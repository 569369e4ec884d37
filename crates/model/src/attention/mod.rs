//! The three steps of every attention, one file each: the score of a query and each key ([`Score`]), the weights
//! computed from the scores ([`Align`]), and the context computed from the weights and the values ([`Context`]).
//!
//! Shapes: n queries of a packed batch, m keys, s keys of the longest sentence, width d. Scores and weights are
//! `[n, s]`: a column for each key of the query's sentence.

mod align;
mod context;
mod score;

pub(crate) use align::{Align, Scope};
pub use align::{AlignKind, DeviationKind};
pub use context::ContextKind;
pub(crate) use context::{Choice, Context, Hard, HardConfig, doubly_stochastic};
pub(crate) use score::{Score, ScoreOptions};
pub use score::{ScoreActivation, ScoreKind, SharpnessKind};

use attend_ops::{Linear, Pass, Shared, linear};
use candle_core::{Result, Tensor};

/// The three steps of an attention, and an optional gate.
pub(crate) struct Attention {
    pub(crate) score: Score,
    pub(crate) align: Align,
    pub(crate) context: Context,
    /// β = σ(w · q + b), a factor on the context (Xu et al. 2015, §4.2.1).
    pub(crate) gate: Option<Linear>,
}

/// The keys and values of an attention.
pub(crate) struct KeysValues {
    /// `[m, d]`
    pub(crate) keys: Shared,
    /// `[m, d]`
    pub(crate) values: Shared,
}

/// The output of an attention.
pub(crate) struct Attended {
    /// `[n, d]`
    pub(crate) context: Tensor,
    /// α `[n, s]`
    pub(crate) weights: Tensor,
    /// The selected keys, if the context is hard.
    pub(crate) choice: Option<Choice>,
}

impl KeysValues {
    pub(crate) fn new(keys: &Tensor, values: &Tensor, pass: &Pass) -> Result<Self> {
        let (keys, values) = (Shared::new(keys, pass)?, Shared::new(values, pass)?);
        Ok(Self { keys, values })
    }
}

impl Attention {
    pub(crate) fn attend(
        &self,
        query: &Tensor,
        over: &KeysValues,
        scope: &Scope,
        pass: &Pass,
    ) -> Result<Attended> {
        let scores = self.score.of(query, &over.keys, &scope.pairs, pass)?;
        let max_keys = self.score.max_keys();
        let weights = self.align.weights(&scores, query, scope, max_keys, pass)?;
        let weights = if pass.trains() {
            weights
        } else {
            weights.detach() // no gradient is needed
        };
        let (context, choice) = self.context.of(&weights, &over.values, scope, pass)?;
        let context = match &self.gate {
            None => context,
            Some(gate) => {
                let beta = sigmoid(&linear(query, &[gate], pass)?)?; // (n, 1)
                context.broadcast_mul(&beta)?
            }
        };
        Ok(Attended {
            context,
            weights,
            choice,
        })
    }
}

fn sigmoid(x: &Tensor) -> Result<Tensor> {
    (x.neg()?.exp()? + 1.0)?.recip()
}
