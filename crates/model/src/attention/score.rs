use attend_ops::{
    AdditiveActivation, Linear, Pairs, Pass, Shared, Weight, additive_scores, dot_scores, linear,
};
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
    /// v · f(A q + B k + b), where f is a [`ScoreActivation`] (Bahdanau et al. 2015, with tanh).
    Additive,
    /// β cos(q, k), where β is a [`SharpnessKind`] (after Graves et al. 2014).
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

/// f, the non-linearity of an additive score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScoreActivation {
    #[default]
    Tanh,
    Sigmoid,
    Relu,
}

impl ScoreActivation {
    pub const ALL: [ScoreActivation; 3] = [
        ScoreActivation::Tanh,
        ScoreActivation::Sigmoid,
        ScoreActivation::Relu,
    ];
}

impl From<ScoreActivation> for AdditiveActivation {
    fn from(activation: ScoreActivation) -> Self {
        match activation {
            ScoreActivation::Tanh => AdditiveActivation::Tanh,
            ScoreActivation::Sigmoid => AdditiveActivation::Sigmoid,
            ScoreActivation::Relu => AdditiveActivation::Relu,
        }
    }
}

/// β, the sharpness of a cosine score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SharpnessKind {
    /// e^g, where g is learnt: one number for all steps.
    #[default]
    Learned,
    /// softplus(w · q + b): the decoder emits a number at each step, as the controller of a Neural Turing
    /// Machine does (Graves et al. 2014, §3.3.1).
    Emitted,
}

impl SharpnessKind {
    pub const ALL: [SharpnessKind; 2] = [SharpnessKind::Learned, SharpnessKind::Emitted];
}

/// What some scores can vary.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScoreOptions {
    /// The number of source positions that a location score covers.
    pub(crate) positions: usize,
    /// Of an additive score.
    pub(crate) activation: ScoreActivation,
    /// Of a cosine score.
    pub(crate) sharpness: SharpnessKind,
}

/// The first step: `[n, d]` and `[m, d]` to `[n, s]`.
pub(crate) enum Score {
    Dot,
    ScaledDot { width: usize },
    General(Linear),
    Additive(Additive),
    Cosine(Sharpness),
    Location(Linear),
}

pub(crate) struct Additive {
    query: Linear,
    key: Linear,
    vector: Weight,
    activation: AdditiveActivation,
}

pub(crate) enum Sharpness {
    /// g
    Learned(Weight),
    /// w and b
    Emitted(Linear),
}

/// Avoids a division by zero for a zero vector.
const EPSILON: f64 = 1e-6;
/// The initial β, so that weights differ by a factor of up to e^10.
const SHARPNESS: f64 = 5.0;

impl Score {
    pub(crate) fn new(
        kind: ScoreKind,
        name: &str,
        width: usize,
        options: ScoreOptions,
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
                activation: options.activation.into(),
            }),
            ScoreKind::Cosine => {
                let name = format!("{name}.sharpness");
                Score::Cosine(match options.sharpness {
                    SharpnessKind::Learned => {
                        Sharpness::Learned(init.scalar(&name, SHARPNESS.ln())?)
                    }
                    SharpnessKind::Emitted => {
                        let bias = SHARPNESS.exp_m1().ln(); // softplus(b) = SHARPNESS
                        Sharpness::Emitted(init.affine(&name, width, 1, |_| bias)?)
                    }
                })
            }
            ScoreKind::Location => {
                let table = init.matrix(&format!("{name}.location"), width, options.positions)?;
                Score::Location(table)
            }
        })
    }

    /// The keys, computed once for all queries: `[m, d]` to `[m, d]`.
    pub(crate) fn keys(&self, states: &Tensor, pass: &Pass) -> Result<Tensor> {
        match self {
            Score::General(key) => linear(states, &[key], pass),
            Score::Additive(Additive { key, .. }) => linear(states, &[key], pass),
            Score::Cosine(_) => unit(states),
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
                query: w,
                vector,
                activation,
                ..
            }) => {
                let query = linear(query, &[w], pass)?;
                additive_scores(&query, keys, vector, *activation, pairs, pass)
            }
            Score::Cosine(sharpness) => {
                let cosine = dot_scores(&unit(query)?, keys, pairs, pass)?;
                cosine.broadcast_mul(&sharpness.of(query, pass)?)
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

impl Sharpness {
    /// β: `[1]` for all queries, or `[n, 1]`.
    fn of(&self, query: &Tensor, pass: &Pass) -> Result<Tensor> {
        match self {
            Sharpness::Learned(log) => log.value().exp(),
            Sharpness::Emitted(emit) => softplus(&linear(query, &[emit], pass)?),
        }
    }
}

/// log(1 + eˣ), finite for all x.
fn softplus(x: &Tensor) -> Result<Tensor> {
    x.relu()? + (x.abs()?.neg()?.exp()? + 1.0)?.log()?
}

/// Divides every row by its norm.
fn unit(x: &Tensor) -> Result<Tensor> {
    let length = (x.sqr()?.sum_keepdim(D::Minus1)? + EPSILON)?.sqrt()?;
    x.broadcast_div(&length)
}
