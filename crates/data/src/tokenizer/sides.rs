//! The tokenizers of both sides.

use super::Tokenizer;
use crate::{Corpus, Error, Progress, Result, TokenizerConfig, TokenizerFiles};
use std::fs;
use std::path::Path;

const JOINT: &str = "tokenizer.json";
const SOURCE: &str = "tokenizer.source.json";
const TARGET: &str = "tokenizer.target.json";

/// The tokenizers of a model: one for both sides, one for each, or one for the target only.
#[derive(Clone, Debug, PartialEq)]
pub enum Tokenizers {
    /// Source and target have the same vocabulary.
    Joint(Tokenizer),
    /// Source and target have a vocabulary each.
    Separate {
        source: Tokenizer,
        target: Tokenizer,
    },
    /// The source is not text: the model reads features, such as the regions of a picture.
    TargetOnly(Tokenizer),
}

impl Tokenizers {
    /// Loads the files that the config names, or trains on this corpus if it names none.
    pub fn from_config(
        config: &TokenizerConfig,
        corpus: &Corpus,
        progress: &dyn Progress,
    ) -> Result<Self> {
        match &config.file {
            Some(TokenizerFiles::Joint(path)) => Tokenizer::load(path).map(Self::Joint),
            Some(TokenizerFiles::Separate(files)) => Ok(Self::Separate {
                source: Tokenizer::load(&files.source)?,
                target: Tokenizer::load(&files.target)?,
            }),
            None => Self::train(config, corpus, progress),
        }
    }

    /// Trains one tokenizer on both sides of a corpus, or one on each, depending on `joint`.
    pub fn train(
        config: &TokenizerConfig,
        corpus: &Corpus,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let lines = corpus.source.len() + corpus.target.len();
        // Without a total: what comes after the lines, such as merging, can take as long.
        let task = progress.start(&format!("training a tokenizer on {lines} lines"), None);
        let counted = |_: &&str| task.advance(1);
        let source = corpus.source.iter().map(String::as_str).inspect(counted);
        let target = corpus.target.iter().map(String::as_str).inspect(counted);
        if config.joint {
            return Tokenizer::train(config, source.chain(target)).map(Self::Joint);
        }
        Ok(Self::Separate {
            source: Tokenizer::train(config, source)?,
            target: Tokenizer::train(config, target)?,
        })
    }

    /// Loads what [`Tokenizers::save`] wrote.
    pub fn load(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let path = |name| folder.join(name);
        if path(JOINT).exists() {
            return Tokenizer::load(path(JOINT)).map(Self::Joint);
        }
        match (path(SOURCE).exists(), path(TARGET).exists()) {
            (false, false) => Err(Error::MissingFile {
                path: path(JOINT),
                tried: vec![path(SOURCE), path(TARGET)],
            }),
            (false, true) => Tokenizer::load(path(TARGET)).map(Self::TargetOnly),
            (true, _) => Ok(Self::Separate {
                source: Tokenizer::load(path(SOURCE))?,
                target: Tokenizer::load(path(TARGET))?,
            }),
        }
    }

    /// Writes [`Tokenizers::files`] to a folder, which is created if it does not exist.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<()> {
        let folder = folder.as_ref();
        fs::create_dir_all(folder).map_err(|source| Error::Write {
            path: folder.into(),
            source,
        })?;
        for (name, tokenizer) in self.files() {
            tokenizer.save(folder.join(name))?;
        }
        Ok(())
    }

    /// The file name of each tokenizer: `tokenizer.json` for both sides, otherwise
    /// `tokenizer.source.json` and `tokenizer.target.json`, or the latter alone.
    pub fn files(&self) -> Vec<(&'static str, &Tokenizer)> {
        match self {
            Self::Joint(both) => vec![(JOINT, both)],
            Self::Separate { source, target } => vec![(SOURCE, source), (TARGET, target)],
            Self::TargetOnly(target) => vec![(TARGET, target)],
        }
    }

    /// The tokenizer of the source; none if the source is not text.
    pub fn source(&self) -> Option<&Tokenizer> {
        match self {
            Self::Joint(both) => Some(both),
            Self::Separate { source, .. } => Some(source),
            Self::TargetOnly(_) => None,
        }
    }

    /// The tokenizer of the source; an error if the source is not text.
    pub fn require_source(&self) -> Result<&Tokenizer> {
        self.source().ok_or(Error::SourceNotText)
    }

    /// The tokenizer of the target.
    pub fn target(&self) -> &Tokenizer {
        match self {
            Self::Joint(both) => both,
            Self::Separate { target, .. } | Self::TargetOnly(target) => target,
        }
    }

    /// Whether both sides have the same vocabulary, so that they can share embeddings.
    pub fn is_joint(&self) -> bool {
        matches!(self, Self::Joint(_))
    }
}
