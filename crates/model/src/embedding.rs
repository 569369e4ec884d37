//! The tables of tokens that every model has, and which of them are one and the same.

use attend_batch::{Packed, Source};
use attend_config::ConfigError;
use attend_ops::{EmbeddingDropout, Linear, Pass, Weight, embed};
use candle_core::{DType, Device, Result, Tensor, bail};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Vocabularies;
use crate::weights::Init;

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
    pub(crate) source: Weight,
    pub(crate) target: Weight,
    pub(crate) output: Linear,
}

/// The tables of the side that is predicted.
pub(crate) struct TargetTables {
    pub(crate) embedding: Weight,
    pub(crate) output: Linear,
}

/// How wide embeddings and outputs are.
pub(crate) struct Widths {
    /// e
    pub(crate) embedding: usize,
    /// d
    pub(crate) output: usize,
}

impl Tables {
    pub(crate) fn new(
        tie: Tie,
        vocabularies: Vocabularies,
        widths: Widths,
        init: &mut Init,
    ) -> Result<Self> {
        let Some(source_tokens) = vocabularies.source else {
            bail!("this model reads text, but its source has no vocabulary");
        };
        if tie == Tie::All {
            let shared = init.table("model.shared.weight", source_tokens, widths.embedding)?;
            return Ok(Self {
                source: shared.clone(),
                target: shared.clone(),
                output: without_bias(shared),
            });
        }
        let source = "model.encoder.embed_tokens.weight";
        let source = init.table(source, source_tokens, widths.embedding)?;
        let TargetTables { embedding, output } =
            TargetTables::new(tie, vocabularies.target, widths, init)?;
        Ok(Self {
            source,
            target: embedding,
            output,
        })
    }

    /// The source's table and those of the target.
    pub(crate) fn split(self) -> (Weight, TargetTables) {
        let target = TargetTables {
            embedding: self.target,
            output: self.output,
        };
        (self.source, target)
    }
}

impl TargetTables {
    /// Tables of `tokens` rows that share nothing with a source.
    pub(crate) fn new(tie: Tie, tokens: usize, widths: Widths, init: &mut Init) -> Result<Self> {
        let embedding = "model.decoder.embed_tokens.weight";
        let embedding = init.table(embedding, tokens, widths.embedding)?;
        let output = match tie {
            Tie::None => init.table("lm_head.weight", tokens, widths.output)?,
            _ => embedding.clone(),
        };
        Ok(Self {
            embedding,
            output: without_bias(output),
        })
    }
}

fn without_bias(weight: Weight) -> Linear {
    Linear { weight, bias: None }
}

/// The token ids of a source; an error if it is not text.
pub(crate) fn tokens(source: &Source) -> Result<&Packed> {
    match source {
        Source::Tokens(tokens) => Ok(tokens),
        Source::Pictures(_) => bail!("this model reads token ids, not pictures"),
        Source::Features(features) => bail!(
            "this model reads token ids, not rows of {} features",
            features.width
        ),
    }
}

/// Embeddings times √e, then dropout, without positions: `[n, e]`.
pub(crate) fn embed_words(
    table: &Weight,
    ids: &[u32],
    drop: &EmbeddingDropout,
    pass: &Pass,
) -> Result<Tensor> {
    let (_, e) = table.dims2()?;
    let device = match table.as_packed() {
        Some(_) => &Device::Cpu,
        None => table.value().device(),
    };
    let nowhere = Tensor::zeros((1, e), DType::F32, device)?;
    let positions = vec![0; ids.len()];
    embed(table, ids, &nowhere, &positions, drop, pass)
}

impl Tie {
    /// Checks that what is shared can be. `key` is the config's, such as `model.transformer.tie`; `joint` says
    /// whether both sides have one vocabulary.
    pub(crate) fn validate(self, key: &str, joint: bool) -> std::result::Result<(), ConfigError> {
        if self == Tie::All && !joint {
            return Err(ConfigError::new(
                key,
                "tie = \"all\" needs one vocabulary for both sides",
                "set tie = \"decoder\" or \"none\", or share the vocabulary: data.tokenizer.joint = true, or one data.tokenizer.file",
            ));
        }
        Ok(())
    }
}
