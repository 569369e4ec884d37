use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::{check_rates, check_sizes, error};
use crate::{Activations, ConfigError, Tie, Vocabularies};

/// `[model.snail]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SnailConfig {
    /// Blocks of the encoder, and as many of the decoder: convolutions, then attention.
    pub blocks: usize,
    /// Width of the embeddings, of the encoder's output and of the decoder's.
    pub d_model: usize,
    /// Channels that each convolution adds.
    pub filters: usize,
    /// Tokens that the convolutions of a block see: there are ⌈log₂ span⌉, each reaching twice as far back
    /// as the one before.
    pub span: usize,
    /// Width of the queries and keys.
    pub d_key: usize,
    /// Width of the values: channels that each attention adds.
    pub d_value: usize,
    /// Dropout on embeddings, on the channels that are added, and on what tokens are predicted from.
    pub dropout: f32,
    /// Which embeddings and output matrices are one and the same.
    pub tie: Tie,
}

impl Default for SnailConfig {
    fn default() -> Self {
        Self {
            blocks: 2,
            d_model: 256,
            filters: 128,
            span: 32,
            d_key: 128,
            d_value: 128,
            dropout: 0.1,
            tie: Tie::Decoder,
        }
    }
}

impl SnailConfig {
    pub fn validate(&self) -> Result<(), ConfigError> {
        check_sizes(&[
            ("model.snail.blocks", self.blocks),
            ("model.snail.d_model", self.d_model),
            ("model.snail.filters", self.filters),
            ("model.snail.span", self.span),
            ("model.snail.d_key", self.d_key),
            ("model.snail.d_value", self.d_value),
        ])?;
        if self.span < 2 {
            return error(
                "model.snail.span",
                "is 1: without convolutions nothing knows the order of words".to_string(),
                "it must be 2 or more",
            );
        }
        check_rates(&[("model.snail.dropout", self.dropout)])
    }

    pub fn validate_with(&self, vocabularies: Vocabularies) -> Result<(), ConfigError> {
        self.validate()?;
        self.tie.validate("model.snail.tie", vocabularies)
    }

    /// How far back each convolution of a block reaches: 1, 2, 4, … 2^⌈log₂ span⌉ / 2.
    pub(super) fn dilations(&self) -> impl Iterator<Item = usize> + use<> {
        let layers = self.span.next_power_of_two().ilog2();
        (0..layers).map(|layer| 1 << layer)
    }

    /// What each convolution keeps of a token: its input, shifted, beside that, and beside what it adds;
    /// what each attention does, of its queries, keys and values; and the gradients of the widest features.
    pub(crate) fn activations(&self, vocabularies: Vocabularies) -> Activations {
        let (d, blocks) = (self.d_model, self.blocks);
        let side = |attentions: usize| {
            let (mut width, mut kept) = (d, 0);
            for _ in 0..blocks {
                for _ in self.dilations() {
                    kept += 4 * width + 5 * self.filters;
                    width += self.filters;
                }
                for _ in 0..attentions {
                    kept += width + 3 * self.d_key + 5 * self.d_value;
                    width += self.d_value;
                }
            }
            kept + 6 * width + 6 * d
        };
        let read = 3 * blocks * (self.d_key + self.d_value); // the decoder's keys and values of the memory
        Activations {
            source: side(1) + read,
            target: side(2),
            source_to_source: 4 * blocks,
            target_to_target: 4 * blocks,
            target_to_source: 4 * blocks,
            fixed: vocabularies.target * d + attend_ops::logits_held(vocabularies.target),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dilations_double_until_they_cover_the_span() {
        let dilations = |span| {
            let config = SnailConfig {
                span,
                ..SnailConfig::default()
            };
            config.dilations().collect::<Vec<_>>()
        };
        assert!(dilations(1).is_empty());
        assert_eq!(dilations(2), [1]);
        assert_eq!(dilations(3), [1, 2]);
        assert_eq!(dilations(32), [1, 2, 4, 8, 16]);
        assert_eq!(dilations(33), [1, 2, 4, 8, 16, 32]);
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_key() {
        let none = SnailConfig {
            filters: 0,
            ..SnailConfig::default()
        };
        let error = none.validate().unwrap_err();
        assert_eq!(error.to_string(), "model.snail.filters: is 0");
        let all = SnailConfig {
            dropout: 1.0,
            ..SnailConfig::default()
        };
        let error = all.validate().unwrap_err();
        assert_eq!(error.to_string(), "model.snail.dropout: is 1");
    }
}
