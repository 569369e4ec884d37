use crate::metrics::{Score, bleu, chrf};
use crate::{Result, Translator};

/// The translations of a test set and their scores.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// The best translation of every line.
    pub hypotheses: Vec<String>,
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
    let hypotheses: Vec<String> = translations
        .into_iter()
        .map(|translation| translation.text().to_string())
        .collect();
    Ok(Evaluation {
        bleu: bleu(&hypotheses, references)?,
        chrf: chrf(&hypotheses, references)?,
        hypotheses,
    })
}
