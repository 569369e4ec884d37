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

/// Translates `source` and scores the translations against `references`, line by line.
pub fn evaluate(
    translator: &Translator,
    source: &[impl AsRef<str> + Sync],
    references: &[impl AsRef<str>],
) -> Result<Evaluation> {
    let translations = translator.translate(source)?;
    let source_tokens = translations
        .iter()
        .map(|translation| translation.source_tokens);
    let source_tokens = source_tokens.collect();
    let hypotheses: Vec<String> = translations
        .into_iter()
        .map(|translation| translation.text().to_string())
        .collect();
    Ok(Evaluation {
        bleu: bleu(&hypotheses, references)?,
        chrf: chrf(&hypotheses, references)?,
        hypotheses,
        source_tokens,
    })
}
