//! One tokenizer for both languages, or one for each.

use super::Tokenizer;
use crate::{Corpus, Error, Result, TokenizerConfig, TokenizerFiles};
use std::fs;
use std::path::Path;

const JOINT: &str = "tokenizer.json";
const SOURCE: &str = "tokenizer.source.json";
const TARGET: &str = "tokenizer.target.json";

/// One tokenizer that both sides share, or one for each side.
#[derive(Clone, Debug, PartialEq)]
pub enum Tokenizers {
    /// Source and target have the same vocabulary.
    Joint(Tokenizer),
    /// Source and target have a vocabulary each.
    Separate {
        source: Tokenizer,
        target: Tokenizer,
    },
}

impl Tokenizers {
    /// What the config asks for: the files it names, or else tokenizers trained on this corpus.
    pub fn from_config(config: &TokenizerConfig, corpus: &Corpus) -> Result<Self> {
        match &config.file {
            Some(TokenizerFiles::Joint(path)) => Tokenizer::load(path).map(Self::Joint),
            Some(TokenizerFiles::Separate(files)) => Ok(Self::Separate {
                source: Tokenizer::load(&files.source)?,
                target: Tokenizer::load(&files.target)?,
            }),
            None => Self::train(config, corpus),
        }
    }

    /// Trains on both sides of a corpus, together or apart as the config says.
    pub fn train(config: &TokenizerConfig, corpus: &Corpus) -> Result<Self> {
        let source = corpus.source.iter().map(String::as_str);
        let target = corpus.target.iter().map(String::as_str);
        match config.joint {
            true => Tokenizer::train(config, source.chain(target)).map(Self::Joint),
            false => Ok(Self::Separate {
                source: Tokenizer::train(config, source)?,
                target: Tokenizer::train(config, target)?,
            }),
        }
    }

    /// Reads what [`Tokenizers::save`] wrote.
    pub fn load(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let path = |name| folder.join(name);
        if path(JOINT).exists() {
            return Tokenizer::load(path(JOINT)).map(Self::Joint);
        }
        if !path(SOURCE).exists() && !path(TARGET).exists() {
            return Err(Error::MissingFile {
                path: path(JOINT),
                tried: vec![path(SOURCE), path(TARGET)],
            });
        }
        Ok(Self::Separate {
            source: Tokenizer::load(path(SOURCE))?,
            target: Tokenizer::load(path(TARGET))?,
        })
    }

    /// Writes `tokenizer.json` when joint, otherwise `tokenizer.source.json` and
    /// `tokenizer.target.json`. Makes the folder if need be.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<()> {
        let folder = folder.as_ref();
        fs::create_dir_all(folder).map_err(|source| Error::Write {
            path: folder.into(),
            source,
        })?;
        match self {
            Self::Joint(both) => both.save(folder.join(JOINT)),
            Self::Separate { source, target } => {
                source.save(folder.join(SOURCE))?;
                target.save(folder.join(TARGET))
            }
        }
    }

    /// The tokenizer of the source language.
    pub fn source(&self) -> &Tokenizer {
        match self {
            Self::Joint(both) => both,
            Self::Separate { source, .. } => source,
        }
    }

    /// The tokenizer of the target language.
    pub fn target(&self) -> &Tokenizer {
        match self {
            Self::Joint(both) => both,
            Self::Separate { target, .. } => target,
        }
    }

    /// Whether both sides share one vocabulary, and so could share embeddings.
    pub fn is_joint(&self) -> bool {
        matches!(self, Self::Joint(_))
    }
}
