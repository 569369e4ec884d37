use attend_config::ConfigError;
use attend_ops::Cell;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::attention_config::{AttentionChoice, AttentionConfig};
use crate::Tie;

/// `[model.recurrent]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RecurrentConfig {
    /// The recurrent cell.
    pub cell: CellKind,
    /// Number of encoder layers: at least 1, or 0 in `[model.caption]`.
    #[schemars(range(min = 0, max = 100_000))]
    pub encoder_layers: usize,
    /// Number of decoder layers.
    #[schemars(range(min = 1, max = 100_000))]
    pub decoder_layers: usize,
    /// Width of the embeddings.
    #[schemars(range(min = 1, max = 100_000))]
    pub d_embed: usize,
    /// Width of the states. In a bidirectional encoder, each direction has half of it.
    #[schemars(range(min = 1, max = 100_000))]
    pub d_hidden: usize,
    /// Whether the encoder reads in both directions.
    pub bidirectional: bool,
    /// Whether a unidirectional encoder reads from the last token to the first (Sutskever et al. 2014).
    pub reverse_source: bool,
    /// Dropout on the embeddings, between layers, and on the states that predict tokens.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub dropout: f32,
    /// Which embedding and output matrices are shared. Sharing needs d_embed = d_hidden.
    pub tie: Tie,
    /// For `attention = "none"`: when the decoder gets the encoder's summary of the sentence.
    #[serde(skip_serializing_if = "ContextSteps::is_first")]
    pub context: ContextSteps,
    /// `"none"`, `"bahdanau"`, `"luong"`, or a table with the values that differ from the defaults. With
    /// `"none"`, the decoder gets the encoder's last states only.
    pub attention: AttentionChoice,
}

/// When a decoder without attention gets the encoder's summary of the sentence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ContextSteps {
    /// As its first state (Sutskever et al. 2014).
    #[default]
    First,
    /// As its first state, and as an input of every step and of every prediction (Cho et al. 2014).
    Every,
}

impl ContextSteps {
    fn is_first(&self) -> bool {
        *self == ContextSteps::First
    }
}

/// The recurrent cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CellKind {
    /// Long short-term memory (Hochreiter and Schmidhuber 1997).
    Lstm,
    /// Gated recurrent unit (Cho et al. 2014).
    Gru,
}

impl From<CellKind> for Cell {
    fn from(kind: CellKind) -> Self {
        match kind {
            CellKind::Lstm => Cell::Lstm,
            CellKind::Gru => Cell::Gru,
        }
    }
}

impl Default for RecurrentConfig {
    fn default() -> Self {
        Self {
            cell: CellKind::Lstm,
            encoder_layers: 1,
            decoder_layers: 1,
            d_embed: 512,
            d_hidden: 512,
            bidirectional: true,
            reverse_source: false,
            dropout: 0.2,
            tie: Tie::Decoder,
            context: ContextSteps::First,
            attention: AttentionConfig::default().into(),
        }
    }
}

impl RecurrentConfig {
    /// Checks the values that depend on each other.
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        at_least_one_layer("model.recurrent.encoder_layers", self.encoder_layers)?;
        self.validate_as_decoder()
    }

    /// The same for a model that has another encoder, and perhaps no layers of this one.
    pub(crate) fn validate_as_decoder(&self) -> Result<(), ConfigError> {
        let bidirectional = self.bidirectional && self.encoder_layers > 0;
        if bidirectional && !self.d_hidden.is_multiple_of(2) {
            return Err(ConfigError::new(
                "model.recurrent.d_hidden",
                format!("d_hidden = {} is odd", self.d_hidden),
                "choose an even one; each direction of a bidirectional encoder has half of it",
            ));
        }
        if bidirectional && self.reverse_source {
            return Err(ConfigError::new(
                "model.recurrent.reverse_source",
                "has no effect if the encoder is bidirectional",
                "leave it out, or set bidirectional = false",
            ));
        }
        if self.tie != Tie::None && self.d_embed != self.d_hidden {
            let (e, h) = (self.d_embed, self.d_hidden);
            return Err(ConfigError::new(
                "model.recurrent.tie",
                format!("needs d_embed = d_hidden, but they are {e} and {h}"),
                "make the two equal, or set tie = \"none\"",
            ));
        }
        if self.context == ContextSteps::Every && self.attention != AttentionChoice::None {
            return Err(ConfigError::new(
                "model.recurrent.context",
                "\"every\" is for decoders without attention, whose context is another one at every step",
                "leave it out, or set attention = \"none\"",
            ));
        }
        match &self.attention {
            AttentionChoice::None => Ok(()),
            AttentionChoice::Some(attention) => attention.validate(),
        }
    }
}

/// Refuses an encoder without layers. Only a model that makes states of its own can do without.
pub(crate) fn at_least_one_layer(key: &str, layers: usize) -> Result<(), ConfigError> {
    if layers == 0 {
        let hint = "it must be from 1 to 100000; only a [model.caption] can have 0";
        return Err(ConfigError::new(key, "is 0", hint));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AlignKind, ScoreKind};

    #[test]
    fn keys_that_were_added_are_written_only_if_they_say_something_new() {
        let before = [
            "{\"attention\":\"none\"}",
            "{\"attention\":\"bahdanau\"}",
            "{\"attention\":{\"score\":\"cosine\"}}",
        ];
        for json in before {
            let config: RecurrentConfig = serde_json::from_str(json).unwrap();
            let written = serde_json::to_string(&config).unwrap();
            for key in [
                "\"context\":\"first",
                "activation",
                "sharpness",
                "deviation",
            ] {
                assert!(!written.contains(key), "{written}");
            }
        }
        // What saved configs lack is from before: local-p always has it.
        let config = RecurrentConfig {
            attention: AttentionChoice::Some(AttentionConfig {
                score: Some(ScoreKind::Dot),
                align: AlignKind::LocalP,
                ..AttentionConfig::default()
            }),
            ..RecurrentConfig::default()
        };
        let written = serde_json::to_string(&config).unwrap();
        assert!(written.contains("\"deviation\":\"fixed\""), "{written}");
    }
}
