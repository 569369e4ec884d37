use attend_ops::{Linear, Pairs, Pass, Shared, Weight, additive_scores, dot_scores, linear};
use candle_core::{D, Result, Tensor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::weights::Init;

/// The score of a query q and a key k.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScoreKind {
    /// q · k (Luong et al. 2015).
    Dot,
    /// q · k / √d (Vaswani et al. 2017).
    #[default]
    ScaledDot,
    /// q · W k (Luong et al. 2015).
    General,
    /// v · tanh(A q + B k + b) (Bahdanau et al. 2015).
    Additive,
    /// e^g cos(q, k), where g is learnt (after Graves et al. 2014).
    Cosine,
    /// (W q)ⱼ for the key at position j: a function of the query alone (Luong et al. 2015).
    Location,
}

impl ScoreKind {
    pub const ALL: [ScoreKind; 6] = [
        ScoreKind::Dot,
        ScoreKind::ScaledDot,
        ScoreKind::General,
        ScoreKind::Additive,
        ScoreKind::Cosine,
        ScoreKind::Location,
    ];

    /// Whether the score depends on the contents of the key. If not, it has a maximum length.
    pub fn compares(self) -> bool {
        self != ScoreKind::Location
    }
}

/// The first step: `[n, d]` and `[m, d]` to `[n, s]`.
pub(crate) enum Score {
    Dot,
    ScaledDot { width: usize },
    General(Linear),
    Additive(Additive),
    Cosine { sharpness: Weight },
    Location(Linear),
}

pub(crate) struct Additive {
    query: Linear,
    key: Linear,
    vector: Weight,
}

/// Avoids a division by zero for a zero vector.
const EPSILON: f64 = 1e-6;
/// The initial g: e^g = 5, so that weights differ by a factor of up to e^10.
const SHARPNESS: f64 = 1.609_437_912_434_1;

impl Score {
    /// `positions` is the number of source positions that a location score covers.
    pub(crate) fn new(
        kind: ScoreKind,
        name: &str,
        width: usize,
        positions: usize,
        init: &mut Init,
    ) -> Result<Self> {
        Ok(match kind {
            ScoreKind::Dot => Score::Dot,
            ScoreKind::ScaledDot => Score::ScaledDot { width },
            ScoreKind::General => {
                Score::General(init.matrix(&format!("{name}.key"), width, width)?)
            }
            ScoreKind::Additive => Score::Additive(Additive {
                query: init.matrix(&format!("{name}.query"), width, width)?,
                key: init.linear(&format!("{name}.key"), width, width)?,
                vector: init.vector(&format!("{name}.vector"), width)?,
            }),
            ScoreKind::Cosine => Score::Cosine {
                sharpness: init.scalar(&format!("{name}.sharpness"), SHARPNESS)?,
            },
            ScoreKind::Location => {
                let table = init.matrix(&format!("{name}.location"), width, positions)?;
                Score::Location(table)
            }
        })
    }

    /// The keys, computed once for all queries: `[m, d]` to `[m, d]`.
    pub(crate) fn keys(&self, states: &Tensor, pass: &Pass) -> Result<Tensor> {
        match self {
            Score::General(key) => linear(states, &[key], pass),
            Score::Additive(Additive { key, .. }) => linear(states, &[key], pass),
            Score::Cosine { .. } => unit(states),
            Score::Dot | Score::ScaledDot { .. } | Score::Location(_) => Ok(states.clone()),
        }
    }

    /// Scores `[n, s]`. `keys` are computed by [`Score::keys`].
    pub(crate) fn of(
        &self,
        query: &Tensor,
        keys: &Shared,
        pairs: &Pairs,
        pass: &Pass,
    ) -> Result<Tensor> {
        match self {
            Score::Dot | Score::General(_) => dot_scores(query, keys, pairs, pass),
            Score::ScaledDot { width } => {
                let query = query.affine(1.0 / (*width as f64).sqrt(), 0.0)?;
                dot_scores(&query, keys, pairs, pass)
            }
            Score::Additive(Additive {
                query: w, vector, ..
            }) => {
                let query = linear(query, &[w], pass)?;
                additive_scores(&query, keys, vector, pairs, pass)
            }
            Score::Cosine { sharpness } => {
                let cosine = dot_scores(&unit(query)?, keys, pairs, pass)?;
                cosine.broadcast_mul(&sharpness.value().exp()?)
            }
            Score::Location(table) => {
                let scores = linear(query, &[table], pass)?; // (n, positions)
                let (positions, s) = (scores.dim(1)?, pairs.columns());
                if positions >= s {
                    scores.narrow(1, 0, s)?.contiguous()
                } else {
                    scores.pad_with_zeros(1, 0, s - positions)?.contiguous()
                }
            }
        }
    }

    /// The number of keys of a sentence that the score covers. Later keys are masked (Luong et al. 2015, §3.1).
    pub(crate) fn max_keys(&self) -> usize {
        match self {
            Score::Location(table) => table.weight.value().dims()[0],
            _ => usize::MAX,
        }
    }
}

/// Divides every row by its norm.
fn unit(x: &Tensor) -> Result<Tensor> {
    let length = (x.sqr()?.sum_keepdim(D::Minus1)? + EPSILON)?.sqrt()?;
    x.broadcast_div(&length)
}
