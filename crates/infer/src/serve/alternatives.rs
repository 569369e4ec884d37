use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use attend_data::Tokenizer;

use super::Choice;
use super::attention::surfaces;
use crate::pieces::is_spaced_script;
use crate::{Hypothesis, Result};

/// What is asked of `POST /v1/alternatives`: what else could come after the first words of a translation.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AlternativesAsk {
    /// One sentence.
    pub text: String,
    /// Whole words that its translation begins with.
    #[serde(default)]
    pub prefix: String,
    /// How many alternatives.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 32))]
    pub count: usize,
    /// As in `POST /v1/translate`.
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub source: Option<String>,
    #[serde(default)]
    pub target: Option<String>,
}

/// What `POST /v1/alternatives` answers.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AlternativesAnswer {
    pub model: String,
    pub source: String,
    pub target: String,
    /// The likeliest first.
    pub alternatives: Vec<Alternative>,
}

/// A word that could come next.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Alternative {
    /// Different in all alternatives, not only in punctuation. Empty where the translation could end.
    pub word: String,
    /// That of the word's first token.
    pub probability: f32,
    /// The whole translation, if this word comes next.
    pub text: String,
}

impl AlternativesAsk {
    /// The most alternatives.
    pub const MOST: usize = 32;

    /// Which model is asked.
    pub fn choice(&self) -> Choice {
        Choice {
            model: self.model.clone(),
            source: self.source.clone(),
            target: self.target.clone(),
        }
    }
}

fn five() -> usize {
    5
}

/// A word without the punctuation around it, unless it is nothing else.
pub(super) fn without_marks(word: &str) -> &str {
    match word.trim_matches(|c: char| !c.is_alphanumeric()) {
        "" => word,
        bare => bare,
    }
}

/// The first word after the prefix of a translation. In scripts without spaces between words, it is a token.
pub(super) fn next_word(
    tokenizer: &Tokenizer,
    prefix: &str,
    hypothesis: &Hypothesis,
) -> Result<String> {
    let before = match prefix.trim().is_empty() {
        true => 0,
        false => tokenizer.encode(prefix.trim())?.len() - 1, // without `</s>`
    };
    let tokens = hypothesis.tokens.strip_suffix(&[tokenizer.eos()]);
    let surfaces = surfaces(tokenizer, tokens.unwrap_or(&hypothesis.tokens))?;
    let mut word = String::new();
    for surface in surfaces.iter().skip(before) {
        let ends = surface.starts_with(char::is_whitespace);
        if !word.trim().is_empty() && (ends || !word.trim_start().starts_with(is_spaced_script)) {
            break;
        }
        word.push_str(surface);
    }
    Ok(word.trim().to_string())
}
