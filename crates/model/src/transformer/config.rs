use attend_config::ConfigError;
use attend_ops as ops;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::scores::Scores;
use crate::Tie;
use crate::recurrent::at_least_one_layer;

/// `[model.transformer]`. The defaults are the paper's base model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TransformerConfig {
    /// Number of encoder layers: at least 1, or 0 in `[model.caption]`.
    #[schemars(range(min = 0, max = 100_000))]
    pub encoder_layers: usize,
    /// Number of decoder layers.
    #[schemars(range(min = 1, max = 100_000))]
    pub decoder_layers: usize,
    /// Width of the embeddings and of every layer's output. It must be even.
    #[schemars(range(min = 1, max = 100_000))]
    pub d_model: usize,
    /// Number of attention heads. It must divide `d_model`.
    #[schemars(range(min = 1, max = 100_000))]
    pub heads: usize,
    /// Inner width of the feed-forward layers.
    #[schemars(range(min = 1, max = 100_000))]
    pub d_ff: usize,
    /// Dropout on the embeddings and on every sub-layer's output.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub dropout: f32,
    /// Dropout on the attention weights.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub attention_dropout: f32,
    /// Dropout after the activation inside feed-forward layers.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub activation_dropout: f32,
    /// The probability with which a layer is left out of a pass of training (layer dropout).
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub layer_dropout: f32,
    /// Activation function of the feed-forward layers.
    pub activation: Activation,
    /// Layer normalisation after each sub-layer, as in the paper, or before it.
    pub norm: NormKind,
    /// Which embedding and output matrices are shared.
    pub tie: Tie,
    /// Whether a trained bias is added to the logits, as in models that Marian trained.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub output_bias: bool,
    /// The attention score: one for all heads, or a list with one for each head. The paper's "scaled-dot" is
    /// the fastest.
    pub score: Scores,
}

/// Activation function of the feed-forward layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Activation {
    Relu,
    Gelu,
    Swish,
}

/// The place of layer normalisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NormKind {
    /// LN(x + sublayer(x)), as in the paper.
    Post,
    /// x + sublayer(LN(x)), with a final LN after each stack. More stable for deep models.
    Pre,
}

impl Default for TransformerConfig {
    fn default() -> Self {
        Self {
            encoder_layers: 6,
            decoder_layers: 6,
            d_model: 512,
            heads: 8,
            d_ff: 2048,
            dropout: 0.1,
            attention_dropout: 0.0,
            activation_dropout: 0.0,
            layer_dropout: 0.0,
            activation: Activation::Relu,
            norm: NormKind::Post,
            tie: Tie::All,
            output_bias: false,
            score: Scores::default(),
        }
    }
}

fn is_zero(rate: &f32) -> bool {
    *rate == 0.0
}

impl From<Activation> for ops::Activation {
    fn from(activation: Activation) -> Self {
        match activation {
            Activation::Relu => ops::Activation::Relu,
            Activation::Gelu => ops::Activation::Gelu,
            Activation::Swish => ops::Activation::Swish,
        }
    }
}

impl TransformerConfig {
    /// Checks the values that depend on each other.
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        at_least_one_layer("model.transformer.encoder_layers", self.encoder_layers)?;
        self.validate_as_decoder()
    }

    /// The same for a model that has another encoder, and perhaps no layers of this one.
    pub(crate) fn validate_as_decoder(&self) -> Result<(), ConfigError> {
        let (d, heads) = (self.d_model, self.heads);
        if !d.is_multiple_of(heads) {
            return Err(ConfigError::new(
                "model.transformer.heads",
                format!("d_model = {d} is not divisible by heads = {heads}"),
                "choose heads that divide d_model; each head has d_model / heads columns",
            ));
        }
        if !d.is_multiple_of(2) {
            return Err(ConfigError::new(
                "model.transformer.d_model",
                format!("d_model = {d} is odd"),
                "choose an even d_model; sinusoidal positions have as many sines as cosines",
            ));
        }
        let scores = &self.score.0;
        if scores.len() != 1 && scores.len() != heads {
            return Err(ConfigError::new(
                "model.transformer.score",
                format!("{} scores for {heads} heads", scores.len()),
                "give one for all heads, or one for each head",
            ));
        }
        if let Some(score) = scores.iter().find(|score| !score.compares()) {
            return Err(ConfigError::new(
                "model.transformer.score",
                format!("{score:?} does not compare a query with a key").to_lowercase(),
                "choose scaled-dot, dot, general, additive or cosine",
            ));
        }
        Ok(())
    }
}
