use serde::{Deserialize, Serialize};

use crate::metrics::{Score, bleu, chrf};
use crate::{Result, Translator};

/// The translations of a test set and their scores.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// The best translation of every line.
    pub hypotheses: Vec<String>,
    /// The length of every source line in tokens, `</s>` included.
    pub source_tokens: Vec<usize>,
    pub bleu: Score,
    pub chrf: Score,
}

/// The best translation of every line of a text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hypotheses {
    pub lines: Vec<String>,
    /// The length of every source line in tokens, `</s>` included.
    pub source_tokens: Vec<usize>,
}

impl Hypotheses {
    pub fn of(translator: &Translator, source: &[impl AsRef<str> + Sync]) -> Result<Self> {
        let translations = translator.translate(source)?;
        let translations = translations.iter();
        let (lines, source_tokens) = translations
            .map(|translation| (translation.text().to_string(), translation.source_tokens))
            .unzip();
        Ok(Self {
            lines,
            source_tokens,
        })
    }

    /// Those of parts of a text, in their order.
    pub fn join(parts: impl IntoIterator<Item = Self>) -> Self {
        let (mut lines, mut source_tokens) = (Vec::new(), Vec::new());
        for part in parts {
            lines.extend(part.lines);
            source_tokens.extend(part.source_tokens);
        }
        Self {
            lines,
            source_tokens,
        }
    }
}

impl Evaluation {
    /// Scores translations against `references`, line by line.
    pub fn of(hypotheses: Hypotheses, references: &[impl AsRef<str>]) -> Result<Self> {
        let Hypotheses {
            lines: hypotheses,
            source_tokens,
        } = hypotheses;
        Ok(Self {
            bleu: bleu(&hypotheses, references)?,
            chrf: chrf(&hypotheses, references)?,
            hypotheses,
            source_tokens,
        })
    }
}

/// Translates `source` and scores the translations against `references`, line by line.
pub fn evaluate(
    translator: &Translator,
    source: &[impl AsRef<str> + Sync],
    references: &[impl AsRef<str>],
) -> Result<Evaluation> {
    Evaluation::of(Hypotheses::of(translator, source)?, references)
}
