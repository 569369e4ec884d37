//! The tables of tokens that every model has, and which of them are one and the same.

use attend_ops::{DropoutSite, Param, Pass, embed};
use candle_core::{DType, Result, Tensor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::params::Init;
use crate::{ConfigError, Vocabularies};

/// Which embeddings and output matrices are one and the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tie {
    /// Source, target and output, as in the Transformer's paper; needs a joint vocabulary.
    All,
    /// Target and output.
    Decoder,
    None,
}

/// Embeddings `[v, e]` of both sides, and the output matrix `[v, d]`, whose last row, padding, is never
/// predicted.
pub(crate) struct Tables {
    pub(crate) source: Param,
    pub(crate) target: Param,
    pub(crate) output: Param,
}

impl Tables {
    pub(crate) fn new(
        tie: Tie,
        vocabularies: Vocabularies,
        (e, d): (usize, usize),
        init: &mut Init,
    ) -> Result<Self> {
        if tie == Tie::All {
            let shared = init.table("model.shared.weight", vocabularies.source, e)?;
            return Ok(Self {
                source: shared.clone(),
                target: shared.clone(),
                output: shared,
            });
        }
        let source = "model.encoder.embed_tokens.weight";
        let source = init.table(source, vocabularies.source, e)?;
        let target = "model.decoder.embed_tokens.weight";
        let target = init.table(target, vocabularies.target, e)?;
        let output = match tie {
            Tie::None => init.table("lm_head.weight", vocabularies.target, d)?,
            _ => target.clone(),
        };
        Ok(Self {
            source,
            target,
            output,
        })
    }
}

/// Embeddings times √e, then dropout, without positions: `[n, e]`.
pub(crate) fn embed_words(
    table: &Param,
    ids: &[u32],
    drop: DropoutSite,
    pass: &Pass,
) -> Result<Tensor> {
    let e = table.value().dim(1)?;
    let nowhere = Tensor::zeros((1, e), DType::F32, table.value().device())?;
    let positions = vec![0; ids.len()];
    embed(table, ids, &nowhere, &positions, drop.of(pass), pass)
}

impl Tie {
    /// `key` is the config's, such as `model.transformer.tie`.
    pub(crate) fn validate(
        self,
        key: &'static str,
        vocabularies: Vocabularies,
    ) -> std::result::Result<(), ConfigError> {
        if self == Tie::All && !vocabularies.joint {
            return Err(ConfigError {
                key,
                message: "tie = \"all\" needs one vocabulary for both sides".to_string(),
                hint: "set tie = \"decoder\" or \"none\", or data.tokenizer.joint = true"
                    .to_string(),
            });
        }
        Ok(())
    }
}
