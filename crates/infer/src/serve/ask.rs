use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Choice;
use crate::document::{Format, Kind};
use crate::{DecodeConfig, Error, Result};

/// What is asked of `POST /v1/translate`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// One text or several. The lines of a text are translated each by itself, and line breaks are kept.
    pub text: Texts,
    /// The model's name, as in `GET /v1/models`. Without it, the first model for `source` and `target`.
    #[serde(default)]
    pub model: Option<String>,
    /// The language of the text, such as "en", or "auto".
    #[serde(default)]
    pub source: Option<String>,
    /// The language to translate into, such as "de".
    #[serde(default)]
    pub target: Option<String>,
    /// How the text is written.
    #[serde(default)]
    pub format: Format,
    /// Whether lines are split into sentences. Otherwise, a line is a sentence.
    #[serde(default = "yes")]
    pub sentences: bool,
    /// How many translations of each sentence, at most as many as the beam is wide. With sampling, how many are
    /// drawn.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub n_best: usize,
    /// Whether to say which words stand for each other.
    #[serde(default)]
    pub alignments: bool,
    /// Whether to give the attention of each token to the source.
    #[serde(default)]
    pub attention: bool,
    /// Whole words that the translation begins with. Only with one text of one line, which is not split into sentences
    /// then, and neither with HTML nor with `protect`.
    #[serde(default)]
    pub prefix: Option<String>,
    /// Terms and their translations: where a sentence has the term, its translation has the other.
    #[serde(default)]
    pub glossary: BTreeMap<String, String>,
    /// Words and phrases that no translation has.
    #[serde(default)]
    pub forbid: Vec<String>,
    /// What is kept as it is.
    #[serde(default)]
    pub protect: Vec<Kind>,
    /// Search options: keys of `[decode]` in the training config, except `batch_tokens` and `max_source_length`.
    /// What is not given is as in the model's config.
    #[serde(default)]
    #[schemars(with = "DecodeConfig")]
    pub decode: Map<String, Value>,
}

/// A string or a list of strings.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "text: expected a string or a list of strings")]
pub enum Texts {
    One(String),
    Many(Vec<String>),
}

impl Ask {
    /// Text to translate with a model's own options.
    pub fn new(text: Texts, choice: Choice) -> Self {
        Self {
            text,
            model: choice.model,
            source: choice.source,
            target: choice.target,
            format: Format::Text,
            sentences: true,
            n_best: 1,
            alignments: false,
            attention: false,
            prefix: None,
            glossary: BTreeMap::new(),
            forbid: Vec::new(),
            protect: Vec::new(),
            decode: Map::new(),
        }
    }

    /// Which model is asked.
    pub fn choice(&self) -> Choice {
        Choice {
            model: self.model.clone(),
            source: self.source.clone(),
            target: self.target.clone(),
        }
    }
}

impl Texts {
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }

    /// Of all texts together.
    pub fn characters(&self) -> usize {
        let counts = self.as_slice().iter().map(|text| text.chars().count());
        counts.sum()
    }
}

/// A model's search options with those of a request in their place.
pub(super) fn decode_with(
    defaults: &DecodeConfig,
    given: &Map<String, Value>,
) -> Result<DecodeConfig> {
    const OURS: [&str; 2] = ["batch_tokens", "max_source_length"];
    if given.is_empty() {
        return Ok(defaults.clone());
    }
    let invalid = |message: String| Error::Usage {
        message: format!("decode: {message}"),
        hint: "give keys of `[decode]`, as in the document at /openapi.json".into(),
    };
    if let Some(key) = OURS.iter().find(|key| given.contains_key(**key)) {
        return Err(invalid(format!("{key} is set by the server")));
    }
    let defaults = serde_json::to_value(defaults).map_err(|error| invalid(error.to_string()))?;
    let mut all = defaults.as_object().cloned().unwrap_or_default();
    all.extend(given.clone());
    // Who asks for a beam wants no samples, whatever the model's config says.
    if given.contains_key("beam") && !given.contains_key("sampling") {
        all.insert("sampling".into(), false.into());
    }
    let decode: DecodeConfig =
        serde_json::from_value(Value::Object(all)).map_err(|error| invalid(error.to_string()))?;
    decode.validate()?;
    Ok(decode)
}

fn yes() -> bool {
    true
}

fn one() -> usize {
    1
}
