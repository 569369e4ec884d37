use attend_ops::{Linear, Pairs, Param, Pass, Shared, additive_scores, dot_scores, linear};
use candle_core::{D, Result, Tensor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::params::Init;

/// How well a query q fits a key k.
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
    /// e^g cos(q, k), g being learnt (after Graves et al. 2014).
    Cosine,
    /// (W q)ⱼ for the key in place j: the query alone says where to look (Luong et al. 2015).
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

    /// Whether it compares two contents, and so needs no greatest length.
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
    Cosine { sharpness: Param },
    Location(Linear),
}

pub(crate) struct Additive {
    query: Linear,
    key: Linear,
    vector: Param,
}

/// Keeps the norm of a zero vector from being a divisor.
const EPSILON: f64 = 1e-6;
/// e^g of a new cosine score is 5: weights then differ by up to e^10.
const SHARPNESS: f64 = 1.609_437_912_434_1;

impl Score {
    /// `positions` is how many places a location score knows.
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

    /// What is the same for every query: `[m, d]` to `[m, d]`.
    pub(crate) fn read(&self, states: &Tensor, pass: &Pass) -> Result<Tensor> {
        match self {
            Score::General(key) => linear(states, &[key], pass),
            Score::Additive(Additive { key, .. }) => linear(states, &[key], pass),
            Score::Cosine { .. } => unit(states),
            Score::Dot | Score::ScaledDot { .. } | Score::Location(_) => Ok(states.clone()),
        }
    }

    /// `keys` are what [`Score::read`] made of the states.
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
                match positions >= s {
                    true => scores.narrow(1, 0, s)?.contiguous(),
                    false => scores.pad_with_zeros(1, 0, s - positions)?.contiguous(),
                }
            }
        }
    }

    /// How many keys of a sentence it can tell apart; those beyond are not seen (Luong et al. 2015, §3.1).
    pub(crate) fn reach(&self) -> usize {
        match self {
            Score::Location(table) => table.weight.value().dims()[0],
            _ => usize::MAX,
        }
    }
}

/// Every row divided by its length.
fn unit(x: &Tensor) -> Result<Tensor> {
    let length = (x.sqr()?.sum_keepdim(D::Minus1)? + EPSILON)?.sqrt()?;
    x.broadcast_div(&length)
}
