use attend_config::{ConfigError, check_ranges};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::EarlyStopping;

/// `[decode]`: how a trained model translates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DecodeConfig {
    /// The beam size. 1 is greedy search. More than 10 rarely helps.
    #[schemars(range(min = 1, max = 1000))]
    pub beam: usize,
    /// Translations are ranked by log-probability / L^`length_penalty`, where L is `length_measure`.
    /// Values above 0 favour long translations. 0 ranks by probability alone.
    pub length_penalty: f32,
    /// How the length of a translation is measured for `length_penalty`.
    pub length_measure: LengthMeasure,
    /// When beam search stops: `true` as soon as `beam` translations have ended, which is faster and what
    /// CTranslate2 does; `false` when the best one that has not ended would also rank below all of these if it
    /// ended now; `"never"` when it would do so at any length up to the limit.
    pub early_stopping: EarlyStopping,
    /// How much it counts against a translation of a beam if tokens of the source have had little attention: this
    /// times the sum of log(min(attention, 1)) over them (Wu et al. 2016, equation 14) is added to its score. 0 is off.
    /// It needs a model with attention, and takes time.
    #[schemars(range(min = 0))]
    pub coverage_penalty: f32,
    /// Maximum number of tokens in a translation, including `</s>`. At least 2: one token and `</s>`.
    #[schemars(range(min = 2))]
    pub max_length: usize,
    /// A sentence of n source tokens has a translation of at most n times this many tokens, plus 10. A
    /// model that does not predict `</s>` then stops before `max_length`.
    #[schemars(range(min = 0))]
    pub max_length_ratio: f32,
    /// Minimum number of tokens in a translation, including `</s>`. Where it is more than the maximum, the
    /// maximum counts.
    #[schemars(range(min = 0))]
    pub min_length: usize,
    /// A sentence of n source tokens has a translation of at least n times this many tokens.
    #[schemars(range(min = 0))]
    pub min_length_ratio: f32,
    /// No sequence of this many tokens is in a translation twice. 0 is off.
    #[schemars(range(min = 0))]
    pub no_repeat_ngram: usize,
    /// The logit of a token that the translation has already is divided by this if it is positive, and
    /// multiplied by it if it is negative (Keskar et al. 2019). 1 is off.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub repetition_penalty: f32,
    /// Draws each token from the model's probabilities instead of searching for the likeliest translation. `beam`
    /// and what belongs to it has no effect then. The temperature is applied first, then `top_k`, `top_p` and
    /// `min_p`, each to what the one before left.
    pub sampling: bool,
    /// What logits are divided by before a token is drawn. Below 1 favours likely tokens.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub temperature: f32,
    /// Only this many of the likeliest tokens are drawn. 0 is off.
    #[schemars(range(min = 0))]
    pub top_k: usize,
    /// Only the likeliest tokens that together have at least this probability are drawn (Holtzman et al. 2020).
    /// 1 is off.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub top_p: f32,
    /// Only tokens are drawn that have at least this share of the likeliest one's probability. 0 is off.
    #[schemars(range(min = 0, max = 1))]
    pub min_p: f32,
    /// Sampling draws the same translations for the same seed and line number, whatever is translated with them.
    #[schemars(range(min = 0))]
    pub seed: u64,
    /// Maximum number of tokens of a source line, including `</s>`. Of a longer line only the beginning is
    /// translated, with a warning: the time for a line grows with the square of its length. At least 2.
    #[schemars(range(min = 2))]
    pub max_source_length: usize,
    /// Batch size in source tokens times `beam`. A smaller batch needs less memory. A sentence that is
    /// longer is a batch of its own.
    #[schemars(range(min = 1))]
    pub batch_tokens: usize,
}

/// How the length of a translation is measured, including `</s>`. Its log-probability is divided by this
/// length to the power of `length_penalty`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum LengthMeasure {
    /// (5 + tokens) / 6 (Wu et al. 2016, equation 14), which changes little for short translations.
    #[default]
    Gnmt,
    /// The number of tokens, as in Hugging Face's `generate`.
    Tokens,
}

impl LengthMeasure {
    /// The length of a translation of this many tokens, including `</s>`.
    pub(crate) fn of(self, tokens: usize) -> f64 {
        match self {
            LengthMeasure::Gnmt => (5.0 + tokens as f64) / 6.0,
            LengthMeasure::Tokens => tokens as f64,
        }
    }
}

impl Default for DecodeConfig {
    fn default() -> Self {
        Self {
            beam: 4,
            length_penalty: 0.6,
            length_measure: LengthMeasure::Gnmt,
            early_stopping: EarlyStopping::No,
            coverage_penalty: 0.0,
            max_length: 256,
            max_length_ratio: 3.0,
            min_length: 0,
            min_length_ratio: 0.0,
            no_repeat_ngram: 0,
            repetition_penalty: 1.0,
            sampling: false,
            temperature: 1.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            seed: 0,
            max_source_length: 1024,
            batch_tokens: 4096,
        }
    }
}

impl DecodeConfig {
    /// Checks every value.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check_ranges(self, "decode")
    }

    /// Maximum number of tokens in a translation of this many source tokens, including `</s>`.
    pub(crate) fn limit(&self, source_tokens: usize) -> usize {
        let by_ratio = source_tokens as f64 * f64::from(self.max_length_ratio);
        self.max_length.min((by_ratio as usize).saturating_add(10))
    }

    /// Minimum number of tokens in a translation of this many source tokens, including `</s>`.
    pub(crate) fn least(&self, source_tokens: usize) -> usize {
        let by_ratio = source_tokens as f64 * f64::from(self.min_length_ratio);
        self.min_length.max(by_ratio.ceil() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid_and_values_out_of_range_are_refused_by_key() {
        let defaults = DecodeConfig::default();
        assert_eq!(defaults.validate(), Ok(()));
        type Change = fn(&mut DecodeConfig);
        let changes: [(&str, Change); 15] = [
            ("decode.beam", |c| c.beam = 0),
            ("decode.beam", |c| c.beam = 1_000_000),
            ("decode.length_penalty", |c| c.length_penalty = f32::NAN),
            ("decode.max_length", |c| c.max_length = 1),
            ("decode.max_length_ratio", |c| c.max_length_ratio = -1.0),
            ("decode.min_length_ratio", |c| c.min_length_ratio = -1.0),
            ("decode.repetition_penalty", |c| c.repetition_penalty = 0.0),
            ("decode.repetition_penalty", |c| {
                c.repetition_penalty = f32::INFINITY
            }),
            ("decode.coverage_penalty", |c| c.coverage_penalty = -1.0),
            ("decode.temperature", |c| c.temperature = 0.0),
            ("decode.top_p", |c| c.top_p = 0.0),
            ("decode.top_p", |c| c.top_p = 1.5),
            ("decode.min_p", |c| c.min_p = 1.5),
            ("decode.max_source_length", |c| c.max_source_length = 1),
            ("decode.batch_tokens", |c| c.batch_tokens = 0),
        ];
        for (key, change) in changes {
            let mut config = defaults.clone();
            change(&mut config);
            let error = config.validate().unwrap_err();
            assert_eq!(error.key, key);
            assert!(
                error.to_string().starts_with(&format!("{key}: is")),
                "{error}"
            );
        }
    }

    #[test]
    fn a_translation_is_limited_by_its_source_and_by_max_length() {
        let config = DecodeConfig::default();
        assert_eq!([1, 10, 100].map(|n| config.limit(n)), [13, 40, 256]);
    }

    #[test]
    fn a_translation_has_at_least_the_larger_of_two_minima() {
        let config = DecodeConfig {
            min_length: 4,
            min_length_ratio: 0.25,
            ..DecodeConfig::default()
        };
        assert_eq!([1, 16, 17, 100].map(|n| config.least(n)), [4, 4, 5, 25]);
    }
}
