use attend_ops as ops;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::scores::Scores;
use crate::config::{check_rates, check_sizes, error};
use crate::{Activations, ConfigError, Tie, Vocabularies};

/// `[model.transformer]`. The defaults are the paper's base model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TransformerConfig {
    /// Layers of the encoder.
    pub encoder_layers: usize,
    /// Layers of the decoder.
    pub decoder_layers: usize,
    /// Width of embeddings and of every layer's output.
    pub d_model: usize,
    /// Attention heads; must divide `d_model`.
    pub heads: usize,
    /// Inner width of the feed-forward layers.
    pub d_ff: usize,
    /// Dropout on embeddings and on every sub-layer's output.
    pub dropout: f32,
    /// Dropout on attention weights.
    pub attention_dropout: f32,
    /// Dropout after the activation inside feed-forward layers.
    pub activation_dropout: f32,
    /// The feed-forward layers' non-linearity.
    pub activation: Activation,
    /// Where layer normalisation stands: after each sub-layer (the paper) or before.
    pub norm: Norm,
    /// Which embeddings and output matrices are one and the same.
    pub tie: Tie,
    /// How well a query fits a key: the paper's "scaled-dot", which is fast, or another, for all heads; or a
    /// list with one for each head.
    pub score: Scores,
}

/// The feed-forward layers' non-linearity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Activation {
    Relu,
    Gelu,
    Swish,
}

/// Where layer normalisation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Norm {
    /// LN(x + sublayer(x)), as in the paper.
    Post,
    /// x + sublayer(LN(x)), with a last LN after each stack: steadier when deep.
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
            attention_dropout: 0.1,
            activation_dropout: 0.1,
            activation: Activation::Relu,
            norm: Norm::Post,
            tie: Tie::All,
            score: Scores::default(),
        }
    }
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
    pub fn validate(&self) -> Result<(), ConfigError> {
        check_sizes(&[
            ("model.transformer.encoder_layers", self.encoder_layers),
            ("model.transformer.decoder_layers", self.decoder_layers),
            ("model.transformer.d_model", self.d_model),
            ("model.transformer.heads", self.heads),
            ("model.transformer.d_ff", self.d_ff),
        ])?;
        let (d, heads) = (self.d_model, self.heads);
        if !d.is_multiple_of(heads) {
            return error(
                "model.transformer.heads",
                format!("d_model = {d} is not divisible by heads = {heads}"),
                "choose heads that divide d_model, so that each head has d_model / heads columns",
            );
        }
        if !d.is_multiple_of(2) {
            return error(
                "model.transformer.d_model",
                format!("d_model = {d} is odd"),
                "sinusoidal positions pair sines with cosines: choose an even d_model",
            );
        }
        let scores = &self.score.0;
        if scores.len() != 1 && scores.len() != heads {
            return error(
                "model.transformer.score",
                format!("{} scores for {heads} heads", scores.len()),
                "name one for all heads, or as many as there are heads",
            );
        }
        if let Some(score) = scores.iter().find(|score| !score.compares()) {
            return error(
                "model.transformer.score",
                format!("{score:?} does not compare a query with a key").to_lowercase(),
                "choose scaled-dot, dot, general, additive or cosine",
            );
        }
        check_rates(&[
            ("model.transformer.dropout", self.dropout),
            (
                "model.transformer.attention_dropout",
                self.attention_dropout,
            ),
            (
                "model.transformer.activation_dropout",
                self.activation_dropout,
            ),
        ])
    }

    /// What a sub-layer's backward needs of its forward, summed over all of them; what one layer's
    /// backward holds; and embeddings, outputs and their gradients.
    pub(crate) fn activations(&self, vocabularies: Vocabularies) -> Activations {
        let (d, encoder, decoder) = (self.d_model, self.encoder_layers, self.decoder_layers);
        let inner = match self.activation {
            Activation::Relu => self.d_ff,
            Activation::Gelu | Activation::Swish => 2 * self.d_ff, // before and after
        };
        let network = 2 * d + inner;
        let fused = self.score == Scores::default();
        // Input, normalised, queries, keys, values, context; and if each head goes its own way, those again,
        // and scores, weights before and after dropout, and a gradient.
        let (attention, cross, weights) = match fused {
            true => (6 * d, 4 * d, 0),
            false => (16 * d, 12 * d, 4 * self.heads),
        };
        let read = if fused { 2 * d } else { 8 * d };
        let passing = 12 * d + 2 * self.d_ff;
        Activations {
            source: encoder * (attention + network) + decoder * read + passing,
            target: decoder * (attention + cross + network) + passing,
            source_to_source: encoder * weights,
            target_to_target: decoder * weights,
            target_to_source: decoder * weights,
            // The loss adds up the gradient of its own matrix.
            fixed: vocabularies.target * d + ops::logits_held(vocabularies.target),
        }
    }

    pub fn validate_with(&self, vocabularies: Vocabularies) -> Result<(), ConfigError> {
        self.validate()?;
        self.tie.validate("model.transformer.tie", vocabularies)
    }
}
