//! `[train.consistency]`: every batch is computed twice, and the two predictions are to be alike.
//!
//! With p and q the predictions of the two passes for a token, and ℓ the label-smoothed cross-entropy:
//!
//! - R-Drop (Liang et al. 2021): both passes have dropout of their own.
//!   loss = ½ (ℓ(p) + ℓ(q)) + α/4 (KL(p ‖ q) + KL(q ‖ p))
//! - SimCut (Gao et al. 2022): the second pass also lacks the embeddings of some tokens of both sides.
//!   loss = ℓ(p) + α KL(p ‖ q)
//!
//! The paper of R-Drop counts each pair twice, so that its loss is twice this one.

use attend_config::ConfigError;
use attend_data::Batch;
use attend_model::{Consistency, Cut, Loss, Pass, Seq2Seq, Words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Result;

/// `[train.consistency]`: every batch is computed twice, and the two predictions are to be alike. It makes a step
/// about twice as long, and helps on small corpora.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConsistencyConfig {
    /// How the two passes differ.
    pub kind: ConsistencyKind,
    /// The weight α of the divergence of the two predictions. Usual values are 5 for r-drop and 3 for simcut.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub weight: f32,
    /// simcut: what the second pass lacks of the embeddings: "tokens" (the default) or "elements".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<CutKind>,
    /// simcut: the share that it lacks, 0.05 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub cut_rate: Option<f32>,
    /// simcut: whether only the second pass learns from the divergence. By default both do, which the paper found
    /// better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detach: Option<bool>,
}

/// The usual share (Gao et al. 2022).
const CUT_RATE: f32 = 0.05;

/// How the two passes over a batch differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConsistencyKind {
    /// By dropout (Liang et al. 2021).
    #[serde(rename = "r-drop")]
    RDrop,
    /// By dropout, and in the second pass a part of the embeddings is zero (Gao et al. 2022).
    #[serde(rename = "simcut")]
    SimCut,
}

/// What is cut from embeddings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CutKind {
    /// The embeddings of whole tokens.
    Tokens,
    /// Single elements of embeddings.
    Elements,
}

impl ConsistencyConfig {
    pub(crate) fn validate(&self) -> std::result::Result<(), ConfigError> {
        let simcut = self.kind == ConsistencyKind::SimCut;
        for (key, given) in [
            ("cut", self.cut.is_some()),
            ("cut_rate", self.cut_rate.is_some()),
            ("detach", self.detach.is_some()),
        ] {
            if given && !simcut {
                let key = format!("train.consistency.{key}");
                let hint = "leave it out, or set train.consistency.kind = \"simcut\"";
                return Err(ConfigError::new(key, "belongs to simcut", hint));
            }
        }
        Ok(())
    }

    /// The loss of a batch, summed over its tokens. `first` is the first of the two passes.
    pub(crate) fn loss(
        &self,
        model: &dyn Seq2Seq,
        batch: &Batch,
        smoothing: f32,
        first: &Pass,
    ) -> Result<Loss> {
        let decode = |pass: &Pass| {
            let memory = model.encode(&batch.source, pass)?;
            model.decode(&memory, &batch.target, pass)
        };
        let outputs = [decode(first)?, decode(&self.second(first))?];
        let terms = self.terms();
        Ok(model.consistent_loss(outputs.each_ref(), &batch.target, smoothing, terms, first)?)
    }

    /// The second pass.
    fn second(&self, first: &Pass) -> Pass {
        let rate = self.cut_rate.unwrap_or(CUT_RATE);
        let cut = match (self.kind, self.cut.unwrap_or(CutKind::Tokens)) {
            (ConsistencyKind::RDrop, _) => None,
            (ConsistencyKind::SimCut, CutKind::Tokens) => Some(Cut::Tokens(rate)),
            (ConsistencyKind::SimCut, CutKind::Elements) => Some(Cut::Elements(rate)),
        };
        let dropped = first.words.dropped;
        first.twin().without(Words { dropped, cut })
    }

    /// The terms of the loss, and their weights.
    fn terms(&self) -> Consistency {
        match self.kind {
            ConsistencyKind::RDrop => Consistency {
                losses: [0.5, 0.5],
                divergences: [self.weight / 4.0; 2],
                first_is_fixed: false,
            },
            ConsistencyKind::SimCut => Consistency {
                losses: [1.0, 0.0],
                divergences: [self.weight, 0.0],
                first_is_fixed: self.detach.unwrap_or(false),
            },
        }
    }
}
