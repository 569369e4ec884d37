//! The three steps of every attention, one file each: how well a query fits each key ([`Score`]), weights out
//! of those scores ([`Align`]), and a context vector out of the values by weight ([`Context`]).
//!
//! n queries of a packed batch, m keys, s keys of the longest sentence, d wide. Scores and weights are
//! `[n, s]`: a column for each key of the query's own sentence.

mod align;
mod context;
mod score;

pub use align::AlignKind;
pub(crate) use align::{Align, Scope};
pub use context::ContextKind;
pub(crate) use context::{Choice, Context, Hard, HardConfig, doubly_stochastic};
pub(crate) use score::Score;
pub use score::ScoreKind;

use attend_ops::{Linear, Pass, Shared, linear};
use candle_core::{Result, Tensor};

/// An attention to the encoder's states, which are its values.
pub(crate) struct Attention {
    pub(crate) score: Score,
    pub(crate) align: Align,
    pub(crate) context: Context,
    /// β = σ(w · q + b), a factor on the context (Xu et al. 2015, §4.2.1).
    pub(crate) gate: Option<Linear>,
}

/// What an attention reads at every step.
pub(crate) struct Read {
    /// `[m, d]`
    pub(crate) keys: Shared,
    /// `[m, d]`
    pub(crate) values: Shared,
}

/// What came of it.
pub(crate) struct Attended {
    /// `[n, d]`
    pub(crate) context: Tensor,
    /// α `[n, s]`
    pub(crate) weights: Tensor,
    /// Which key each query took, if it took just one.
    pub(crate) choice: Option<Choice>,
}

impl Read {
    pub(crate) fn new(keys: &Tensor, values: &Tensor, pass: &Pass) -> Result<Self> {
        let (keys, values) = (Shared::new(keys, pass)?, Shared::new(values, pass)?);
        Ok(Self { keys, values })
    }
}

impl Attention {
    pub(crate) fn attend(
        &self,
        query: &Tensor,
        read: &Read,
        scope: &Scope,
        pass: &Pass,
    ) -> Result<Attended> {
        let scores = self.score.of(query, &read.keys, &scope.pairs, pass)?;
        let reach = self.score.reach();
        let weights = self.align.weights(&scores, query, scope, reach, pass)?;
        let weights = match pass.trains() {
            true => weights,
            false => weights.detach(), // nobody will ask how they came about
        };
        let (context, choice) = self.context.of(&weights, &read.values, scope, pass)?;
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
