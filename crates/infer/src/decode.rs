use attend_model::ConfigError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Beams wider than this are taken for a slip of the pen.
const WIDEST: usize = 1000;

/// `[decode]`: how a trained model translates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DecodeConfig {
    /// How many translations of a sentence are followed at once; 1 is greedy search.
    pub beam: usize,
    /// How much long translations are favoured: translations are ranked by their log-probability,
    /// divided by a measure of length to this power. 0 ranks by probability alone.
    pub length_penalty: f32,
    /// That measure of length.
    pub length_measure: LengthMeasure,
    /// The most tokens of a translation, `</s>` included.
    pub max_length: usize,
    /// A translation of n source tokens has at most n times this many tokens, plus 10: so that a
    /// model that does not find an end stops before `max_length`.
    pub max_length_ratio: f32,
    /// How much is translated at once: the source tokens of a batch times `beam`. Bounds memory; a
    /// sentence that is longer makes a batch of its own.
    pub batch_tokens: usize,
}

/// What a translation's log-probability is divided by, before the power `length_penalty`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LengthMeasure {
    /// (5 + tokens) / 6 (Wu et al. 2016, equation 14): gentle on short translations.
    #[default]
    Gnmt,
    /// The number of tokens, as Hugging Face's `generate` has it.
    Tokens,
}

impl LengthMeasure {
    /// The measure of so many tokens, `</s>` included.
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
            max_length: 256,
            max_length_ratio: 3.0,
            batch_tokens: 4096,
        }
    }
}

impl DecodeConfig {
    pub fn validate(&self) -> Result<(), ConfigError> {
        let Self {
            beam,
            length_penalty,
            length_measure: _,
            max_length,
            max_length_ratio,
            batch_tokens,
        } = *self;
        let check = |good, key, message: String, hint: &str| match good {
            true => Ok(()),
            false => Err(ConfigError {
                key,
                message: format!("is {message}"),
                hint: hint.to_string(),
            }),
        };
        check(
            (1..=WIDEST).contains(&beam),
            "decode.beam",
            beam.to_string(),
            "it must be from 1 (greedy search) to 1000; more than 10 rarely helps",
        )?;
        check(
            length_penalty.is_finite(),
            "decode.length_penalty",
            length_penalty.to_string(),
            "it must be a number; 0 ranks by probability alone",
        )?;
        check(
            max_length >= 2,
            "decode.max_length",
            max_length.to_string(),
            "it must be at least 2: one token and </s>",
        )?;
        check(
            max_length_ratio.is_finite() && max_length_ratio >= 0.0,
            "decode.max_length_ratio",
            max_length_ratio.to_string(),
            "it must be a number and not below 0",
        )?;
        check(
            batch_tokens >= 1,
            "decode.batch_tokens",
            batch_tokens.to_string(),
            "it must be at least 1",
        )
    }

    /// The most tokens of a translation of this many source tokens, `</s>` included.
    pub(crate) fn limit(&self, source_tokens: usize) -> usize {
        let by_ratio = source_tokens as f64 * f64::from(self.max_length_ratio);
        self.max_length.min((by_ratio as usize).saturating_add(10))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid_and_what_cannot_be_is_refused_by_name() {
        let defaults = DecodeConfig::default();
        assert_eq!(defaults.validate(), Ok(()));
        type Change = fn(&mut DecodeConfig);
        let changes: [(&str, Change); 6] = [
            ("decode.beam", |c| c.beam = 0),
            ("decode.beam", |c| c.beam = 1_000_000),
            ("decode.length_penalty", |c| c.length_penalty = f32::NAN),
            ("decode.max_length", |c| c.max_length = 1),
            ("decode.max_length_ratio", |c| c.max_length_ratio = -1.0),
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
    fn a_translation_is_limited_by_its_source_and_by_the_longest_allowed() {
        let config = DecodeConfig::default();
        assert_eq!([1, 10, 100].map(|n| config.limit(n)), [13, 40, 256]);
    }
}
