use crate::Result;

use super::scan::Kind;

/// Counts the tokens of each text, without `</s>`.
pub type CountTokens<'a> = dyn Fn(&[&str]) -> Result<Vec<usize>> + Sync + 'a;

/// The phrases that the translation of a text must have.
pub type TermsOf<'a> = dyn Fn(&str) -> Vec<String> + Sync + 'a;

/// What is done with lines before and after they are translated. By default, every line is one request.
#[derive(Clone, Default)]
pub struct Layout<'a> {
    pub(super) format: Format,
    pub(super) by_sentence: bool,
    /// A code such as `en`.
    pub(super) language: Option<String>,
    pub(super) longest: Option<(usize, &'a CountTokens<'a>)>,
    pub(super) protect: Vec<Kind>,
    pub(super) placeholder: Option<String>,
    pub(super) terms: Option<&'a TermsOf<'a>>,
    pub(super) with_links: bool,
}

/// How lines are written.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Deserialize,
    schemars::JsonSchema,
    clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Nothing but text
    #[default]
    Text,
    /// Text with inline tags, which are put back by word alignment
    Html,
}

impl<'a> Layout<'a> {
    /// Lines in another format than text.
    pub fn in_format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// The language of the lines, as a code such as `en`, for finding the ends of sentences.
    pub fn in_language(self, language: impl Into<String>) -> Self {
        let language = Some(language.into());
        Self { language, ..self }
    }

    /// Translates every sentence of a line by itself.
    pub fn by_sentence(self) -> Self {
        let by_sentence = true;
        Self {
            by_sentence,
            ..self
        }
    }

    /// Splits pieces that have more than so many tokens, `</s>` included.
    pub fn with_longest(self, tokens: usize, count: &'a CountTokens<'a>) -> Self {
        let longest = Some((tokens, count));
        Self { longest, ..self }
    }

    /// Keeps text of these kinds as it is.
    pub fn protecting(self, kinds: &[Kind]) -> Self {
        let protect = kinds.to_vec();
        Self { protect, ..self }
    }

    /// Shows the model this token, which it has learnt to copy, instead of protected text.
    pub fn with_placeholder(self, token: impl Into<String>) -> Self {
        let placeholder = Some(token.into());
        Self {
            placeholder,
            ..self
        }
    }

    /// Asks for the terms of every piece.
    pub fn with_terms(self, terms: &'a TermsOf<'a>) -> Self {
        let terms = Some(terms);
        Self { terms, ..self }
    }

    /// Gives the links of every line.
    pub fn with_links(self) -> Self {
        let with_links = true;
        Self { with_links, ..self }
    }

    /// Whether a line can be something else than one request.
    pub(super) fn is_plain(&self) -> bool {
        self.format == Format::Text && !self.by_sentence
    }

    pub(super) fn language(&self) -> &str {
        self.language.as_deref().unwrap_or("en")
    }
}
