//! `[data.augment]`.

use attend_config::{ConfigError, check_ranges};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[data.augment]`: random changes of the training text, anew in every epoch. All are off (0) by default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AugmentConfig {
    /// BPE tokenizers: the probability of leaving out a merge, on both sides (Provilkov et al. 2020). 0.1 is usual.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub subword_dropout: f64,
    /// Unigram tokenizers: draws the segmentation of a sentence, on both sides, with its probability to the power
    /// of this, normalised (Kudo 2018). 0.2 is usual; 0 turns it off.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0, max = 10))]
    pub subword_alpha: f64,
    /// The probability of replacing a source token by `<unk>`.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub word_dropout: f64,
    /// The share of pairs that are put in upper case.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0, max = 1))]
    pub uppercase: f64,
    /// The share of pairs whose words begin in upper case.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0, max = 1))]
    pub titlecase: f64,
    /// The probability of swapping a character of a source word with the next one. Digits are not changed.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0, max = 1))]
    pub swap_chars: f64,
    /// The probability of deleting a character of a source word. Digits are not changed, and a word keeps at least
    /// one character.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0, max = 1))]
    pub delete_chars: f64,
}

impl AugmentConfig {
    /// Whether pairs are encoded anew each time, for which their text is needed.
    pub fn needs_text(&self) -> bool {
        let without = Self {
            word_dropout: 0.0,
            ..self.clone()
        };
        without.is_on()
    }

    /// Whether anything is changed.
    pub fn is_on(&self) -> bool {
        *self != Self::default()
    }

    /// Checks every value.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check_ranges(self, "data.augment")?;
        if self.uppercase + self.titlecase > 1.0 {
            return Err(ConfigError::new(
                "data.augment.titlecase",
                "and data.augment.uppercase are shares of the pairs, but have a sum above 1",
                "lower one of them",
            ));
        }
        Ok(())
    }
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}
