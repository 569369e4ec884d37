use schemars::JsonSchema;
use serde::Serialize;

use super::Attention;

/// What `POST /v1/translate` answers.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The name of the model that translated.
    pub model: String,
    /// Its languages.
    pub source: String,
    pub target: String,
    /// One for each text, in order.
    pub translations: Vec<TextAnswer>,
}

/// The translation of a text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct TextAnswer {
    pub text: String,
    /// The mean of the scores of its sentences: log-probabilities, divided as `length_penalty` says.
    pub score: f32,
    /// Whether a sentence ended because of the maximum length, not by itself.
    pub cut: bool,
    /// Whether a sentence ended in a loop.
    pub repeats: bool,
    /// Whether a sentence was too long for the model, so that only its beginning was translated.
    pub truncated: bool,
    /// Translations of the glossary that it does not have, although it should.
    pub missing_terms: Vec<String>,
    /// A tag that had no beginning or no end on its line, and was repaired.
    pub repaired: Option<String>,
    /// Pairs of a source word and a target word that stand for each other, if asked for. Words are what white space
    /// separates, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alignments: Option<Vec<(usize, usize)>>,
    pub sentences: Vec<SentenceAnswer>,
}

/// The translation of a sentence.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SentenceAnswer {
    /// The line of the text that it is on, counted from 0.
    pub line: usize,
    pub source: String,
    pub text: String,
    pub score: f32,
    /// The best translations, this one first, if more than one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n_best: Option<Vec<ScoredText>>,
    /// If asked for; null if the model has none, or the answer would have too many weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attention: Option<Option<Attention>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ScoredText {
    pub text: String,
    pub score: f32,
}
