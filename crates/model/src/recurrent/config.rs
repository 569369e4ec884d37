use attend_ops::{Cell, logits_held};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::attention_config::{AttentionChoice, AttentionConfig};
use crate::config::{check_rates, check_sizes, error};
use crate::{Activations, ConfigError, Tie, Vocabularies};

/// `[model.recurrent]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RecurrentConfig {
    /// The recurrent cell.
    pub cell: CellKind,
    /// Layers of the encoder.
    pub encoder_layers: usize,
    /// Layers of the decoder.
    pub decoder_layers: usize,
    /// Width of the embeddings.
    pub d_embed: usize,
    /// Width of the states; a bidirectional encoder has half of it for each direction.
    pub d_hidden: usize,
    /// Whether the encoder reads in both directions.
    pub bidirectional: bool,
    /// Whether an encoder of one direction reads from the last token to the first (Sutskever et al. 2014).
    pub reverse_source: bool,
    /// Dropout on embeddings, between layers, and on what tokens are predicted from.
    pub dropout: f32,
    /// Which embeddings and output matrices are one and the same; those that are need d_embed = d_hidden.
    pub tie: Tie,
    /// `"none"` (the decoder knows the source by its last states alone), `"bahdanau"`, `"luong"`, or a
    /// table with what differs from their defaults.
    pub attention: AttentionChoice,
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
            attention: AttentionConfig::default().into(),
        }
    }
}

impl RecurrentConfig {
    pub fn validate(&self) -> Result<(), ConfigError> {
        check_sizes(&[
            ("model.recurrent.encoder_layers", self.encoder_layers),
            ("model.recurrent.decoder_layers", self.decoder_layers),
            ("model.recurrent.d_embed", self.d_embed),
            ("model.recurrent.d_hidden", self.d_hidden),
        ])?;
        if self.bidirectional && !self.d_hidden.is_multiple_of(2) {
            return error(
                "model.recurrent.d_hidden",
                format!("d_hidden = {} is odd", self.d_hidden),
                "a bidirectional encoder has half of it for each direction: choose an even one",
            );
        }
        if self.bidirectional && self.reverse_source {
            return error(
                "model.recurrent.reverse_source",
                "has no meaning where both directions are read".to_string(),
                "leave it out, or set bidirectional = false",
            );
        }
        if self.tie != Tie::None && self.d_embed != self.d_hidden {
            let (e, h) = (self.d_embed, self.d_hidden);
            return error(
                "model.recurrent.tie",
                format!("ties d_embed = {e} to d_hidden = {h}"),
                "make the two equal, or set tie = \"none\"",
            );
        }
        check_rates(&[("model.recurrent.dropout", self.dropout)])?;
        match &self.attention {
            AttentionChoice::None => Ok(()),
            AttentionChoice::Some(attention) => attention.validate(),
        }
    }

    pub fn validate_with(&self, vocabularies: Vocabularies) -> Result<(), ConfigError> {
        self.validate()?;
        self.tie.validate("model.recurrent.tie", vocabularies)
    }

    /// What each layer keeps of a token: its input, the gates of all steps before and after their
    /// non-linearity, states and their gradients; and what the decoder's steps hand to each other.
    pub(crate) fn activations(&self, vocabularies: Vocabularies) -> Activations {
        let (e, h) = (self.d_embed, self.d_hidden);
        let cell = Cell::from(self.cell);
        let layer = 3 * cell.gates() * h + 4 * cell.state_width(h);
        let (attention, weights) = match &self.attention {
            AttentionChoice::None => (2 * h, 0),
            AttentionChoice::Some(attention) => attention.activations(h),
        };
        Activations {
            source: 2 * e + self.encoder_layers * layer + 6 * h,
            target: 2 * e + self.decoder_layers * layer + attention,
            target_to_source: weights,
            fixed: vocabularies.target * h + logits_held(vocabularies.target),
            ..Activations::default()
        }
    }
}
