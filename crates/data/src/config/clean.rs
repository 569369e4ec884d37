//! `[data.clean]`.

use crate::clean::Scripts;
use attend_config::{ConfigError, check_ranges};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[data.clean]`: which pairs are dropped, in addition to those that cannot be trained on. Every filter is off
/// by default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CleanConfig {
    /// Unicode normalisation of all text before anything else is done with it, also of `valid` and `test`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub normalize: Option<Normalization>,
    /// Drops pairs with fewer tokens than this on a side, `</s>` not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub min_tokens: Option<usize>,
    /// Drops pairs with more characters than this on a side.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_chars: Option<usize>,
    /// Drops pairs with more than so many times as many tokens on one side as on the other, `</s>` not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_ratio: Option<f64>,
    /// Drops pairs that came before in the same corpus.
    #[serde(skip_serializing_if = "is_false")]
    pub duplicates: bool,
    /// Drops pairs with the same text on both sides.
    #[serde(skip_serializing_if = "is_false")]
    pub same: bool,
    /// Drops pairs in which less than this share of a side's characters are letters. White space and combining marks
    /// are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub min_letters: Option<f64>,
    /// Drops pairs in which less than half of the letters of the source are of these scripts of Unicode, such as
    /// ["Latin"]; ["auto"] is the scripts of the language.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source_scripts: Vec<String>,
    /// The same for the target.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub target_scripts: Vec<String>,
    /// Drops pairs whose source or target is also in `valid` or `test`.
    #[serde(skip_serializing_if = "is_false")]
    pub overlap: bool,
}

/// A normalisation form of Unicode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Normalization {
    /// Composed characters.
    Nfc,
    /// Composed characters, with compatibility characters such as full-width letters replaced.
    Nfkc,
}

impl CleanConfig {
    /// Checks every value.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check_ranges(self, "data.clean")?;
        Scripts::check_names("data.clean.source_scripts", &self.source_scripts)?;
        Scripts::check_names("data.clean.target_scripts", &self.target_scripts)
    }
}

fn is_false(value: &bool) -> bool {
    !value
}
