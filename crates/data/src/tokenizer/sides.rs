//! The tokenizers of both sides.

use super::spm::SentencePiece;
use super::vocabulary::Vocabulary;
use super::{Engine, Sample, Tokenizer, parse_vocabulary, read};
use crate::{Corpus, Error, Progress, Result, TokenizerConfig, TokenizerFiles, TokenizerKind};
use attend_config::ConfigError;
use std::fs;
use std::path::Path;
use std::sync::Arc;

const JOINT: &str = "tokenizer.json";
const SOURCE: &str = "tokenizer.source.json";
const TARGET: &str = "tokenizer.target.json";
const SOURCE_MODEL: &str = "source.spm";
const TARGET_MODEL: &str = "target.spm";
const VOCABULARY: &str = "vocab.json";
const TARGET_VOCABULARY: &str = "target_vocab.json";

/// The tokenizers of a model: one for both sides, one for each, or one for the target only.
///
/// They are written as these files. Those of SentencePiece have the names that MarianMT models give them.
///
/// | | `tokenizer.json` of Hugging Face | SentencePiece |
/// |---|---|---|
/// | joint | `tokenizer.json` | `source.spm` and `target.spm`, which are equal, and `vocab.json` |
/// | shared | `tokenizer.json`, `tokenizer.target.json` | `source.spm`, `target.spm`, `vocab.json` |
/// | separate | `tokenizer.source.json`, `tokenizer.target.json` | the same and `target_vocab.json` |
/// | target only | `tokenizer.target.json` | `target.spm`, `target_vocab.json` |
#[derive(Clone, Debug, PartialEq)]
pub enum Tokenizers {
    /// Source and target have the same tokenizer.
    Joint(Tokenizer),
    /// Source and target have the same vocabulary, but each is split in its own way.
    Shared {
        source: Tokenizer,
        target: Tokenizer,
    },
    /// Source and target have a vocabulary each.
    Separate {
        source: Tokenizer,
        target: Tokenizer,
    },
    /// The source is not text: the model reads features, such as the regions of a picture.
    TargetOnly(Tokenizer),
}

impl Tokenizers {
    /// Loads the files that a config names.
    pub fn open(files: &TokenizerFiles) -> Result<Self> {
        match files {
            TokenizerFiles::Joint(path) => Tokenizer::load(path).map(Self::Joint),
            TokenizerFiles::Separate(files) => {
                let source = Tokenizer::load(&files.source)?;
                let target = Tokenizer::load(&files.target)?;
                if source.to_json().is_some() != target.to_json().is_some() {
                    let key = "data.tokenizer.file";
                    let message = "names one tokenizer.json and one SentencePiece model";
                    let hint = "give files of the same kind for both sides";
                    return Err(ConfigError::new(key, message, hint).into());
                }
                Ok(Self::Separate { source, target })
            }
        }
    }

    /// Trains one tokenizer on both sides of a corpus, or one on each, depending on `joint`. If the corpus has more
    /// pairs than `sample`, it trains on a [`Sample`].
    pub fn train(
        config: &TokenizerConfig,
        corpus: &Corpus,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let Corpus { source, target } = corpus;
        if !Sample::holds(config.sample, corpus) {
            let mut sample = Sample::new(config.sample);
            let pairs = source.iter().zip(target);
            pairs.for_each(|(source, target)| sample.push(source, target));
            return Self::train_on(config, &sample, progress);
        }
        let [source, target] = [source, target].map(|side| side.iter().map(String::as_str));
        Self::train_sides(config, corpus.len(), source, target, progress)
    }

    /// The same as [`Tokenizers::train`], on a sample of the pairs.
    pub fn train_on(
        config: &TokenizerConfig,
        sample: &Sample,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let source = sample.pairs().map(|(source, _)| source);
        let target = sample.pairs().map(|(_, target)| target);
        Self::train_sides(config, sample.len(), source, target, progress)
    }

    /// The same for the target alone, because the source is not text.
    pub(super) fn train_target(
        config: &TokenizerConfig,
        sample: &Sample,
        progress: &dyn Progress,
    ) -> Result<Self> {
        warn_of_unigram(config);
        let lines = sample.len();
        let task = progress.start(&format!("training a tokenizer on {lines} lines"), None);
        let target = sample.pairs().map(|(_, target)| target);
        let target = target.inspect(|_| task.advance(1));
        Tokenizer::train(config, target).map(Self::TargetOnly)
    }

    /// These tokenizers without that of the source, which is not text.
    pub fn target_only(self) -> Self {
        match self {
            Self::Joint(target)
            | Self::Shared { target, .. }
            | Self::Separate { target, .. }
            | Self::TargetOnly(target) => Self::TargetOnly(target),
        }
    }

    fn train_sides<'a>(
        config: &TokenizerConfig,
        pairs: usize,
        source: impl Iterator<Item = &'a str> + Clone + Send,
        target: impl Iterator<Item = &'a str> + Clone + Send,
        progress: &dyn Progress,
    ) -> Result<Self> {
        warn_of_unigram(config);
        let lines = 2 * pairs;
        // Without a total: what comes after the lines, such as merging, can take as long.
        let task = progress.start(&format!("training a tokenizer on {lines} lines"), None);
        let counted = |_: &&str| task.advance(1);
        let (source, target) = (source.inspect(counted), target.inspect(counted));
        if config.joint {
            return Tokenizer::train(config, source.chain(target)).map(Self::Joint);
        }
        Ok(Self::Separate {
            source: Tokenizer::train(config, source)?,
            target: Tokenizer::train(config, target)?,
        })
    }

    /// Loads what [`Tokenizers::save`] wrote, or the files of a MarianMT model.
    pub fn load(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let path = |name| folder.join(name);
        let exists = |name| path(name).exists();
        if exists(SOURCE_MODEL) {
            return Self::load_models(folder);
        }
        if exists(JOINT) {
            let source = Tokenizer::load(path(JOINT))?;
            if !exists(TARGET) {
                return Ok(Self::Joint(source));
            }
            let target = Tokenizer::load(path(TARGET))?;
            return Self::shared(source, target, &path(TARGET));
        }
        match (exists(SOURCE), exists(TARGET)) {
            (false, true) => Tokenizer::load(path(TARGET)).map(Self::TargetOnly),
            (false, false) if exists(TARGET_MODEL) => {
                let vocabulary = vocabulary(&path(TARGET_VOCABULARY))?;
                model(&path(TARGET_MODEL), vocabulary).map(Self::TargetOnly)
            }
            (false, false) => Err(Error::MissingFile {
                path: path(JOINT),
                tried: [SOURCE, TARGET, SOURCE_MODEL].map(path).into(),
            }),
            (true, _) => Ok(Self::Separate {
                source: Tokenizer::load(path(SOURCE))?,
                target: Tokenizer::load(path(TARGET))?,
            }),
        }
    }

    /// Loads two models of SentencePiece and their vocabularies.
    fn load_models(folder: &Path) -> Result<Self> {
        let path = |name| folder.join(name);
        let vocab = vocabulary(&path(VOCABULARY))?;
        let source = model(&path(SOURCE_MODEL), vocab.clone())?;
        if path(TARGET_VOCABULARY).exists() {
            let target = model(&path(TARGET_MODEL), vocabulary(&path(TARGET_VOCABULARY))?)?;
            return Ok(Self::Separate { source, target });
        }
        let target = model(&path(TARGET_MODEL), vocab)?;
        Ok(if source == target {
            Self::Joint(source)
        } else {
            Self::Shared { source, target }
        })
    }

    /// Two tokenizers that must have the same vocabulary.
    fn shared(source: Tokenizer, target: Tokenizer, place: &Path) -> Result<Self> {
        let size = source.vocab_size().max(target.vocab_size()) as u32;
        match (0..size).find(|id| source.token(*id) != target.token(*id)) {
            None => Ok(Self::Shared { source, target }),
            Some(id) => Err(Error::Tokenizer {
                place: place.display().to_string(),
                message: format!(
                    "id {id} is another token than in {JOINT}, with which it shares a vocabulary"
                ),
            }),
        }
    }

    /// Writes [`Tokenizers::files`] to a folder, which is created if it does not exist.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<()> {
        let folder = folder.as_ref();
        let failed = |path: &Path| {
            let path = path.into();
            move |source| Error::Write { path, source }
        };
        fs::create_dir_all(folder).map_err(failed(folder))?;
        for (name, bytes) in self.files() {
            let path = folder.join(name);
            fs::write(&path, bytes).map_err(failed(&path))?;
        }
        Ok(())
    }

    /// The names and the bytes of the files.
    pub fn files(&self) -> Vec<(&'static str, Vec<u8>)> {
        const BOTH: [&str; 2] = [SOURCE_MODEL, TARGET_MODEL];
        match self {
            Self::Joint(both) => files(both, JOINT, &BOTH, Some(VOCABULARY)),
            Self::Shared { source, target } => {
                let mut all = files(source, JOINT, &BOTH[..1], Some(VOCABULARY));
                all.extend(files(target, TARGET, &BOTH[1..], None));
                all
            }
            Self::Separate { source, target } => {
                let mut all = files(source, SOURCE, &BOTH[..1], Some(VOCABULARY));
                all.extend(files(target, TARGET, &BOTH[1..], Some(TARGET_VOCABULARY)));
                all
            }
            Self::TargetOnly(target) => files(target, TARGET, &BOTH[1..], Some(TARGET_VOCABULARY)),
        }
    }

    /// The tokenizer of the source; none if the source is not text.
    pub fn source(&self) -> Option<&Tokenizer> {
        match self {
            Self::Joint(both) => Some(both),
            Self::Shared { source, .. } | Self::Separate { source, .. } => Some(source),
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
            Self::Shared { target, .. } | Self::Separate { target, .. } => target,
            Self::TargetOnly(target) => target,
        }
    }

    /// Whether both sides have the same vocabulary, so that they can share embeddings.
    pub fn is_joint(&self) -> bool {
        matches!(self, Self::Joint(_) | Self::Shared { .. })
    }
}

fn warn_of_unigram(config: &TokenizerConfig) {
    if config.kind == TokenizerKind::Unigram {
        tracing::warn!(
            "training a unigram tokenizer is not reproducible: the same text may give other tokens next time"
        );
    }
}

/// The files of one tokenizer: its JSON, or its model under each of these names and its vocabulary.
fn files(
    tokenizer: &Tokenizer,
    json: &'static str,
    models: &[&'static str],
    vocabulary: Option<&'static str>,
) -> Vec<(&'static str, Vec<u8>)> {
    let spm = match &tokenizer.engine {
        Engine::Json(inner) => return vec![(json, inner.text.clone().into_bytes())],
        Engine::SentencePiece(spm) => spm,
    };
    let models = models.iter().map(|name| (*name, spm.bytes.clone()));
    let vocabulary = vocabulary.map(|name| (name, spm.vocabulary.to_json().into_bytes()));
    models.chain(vocabulary).collect()
}

fn vocabulary(path: &Path) -> Result<Arc<Vocabulary>> {
    parse_vocabulary(&read(path)?, &path.display().to_string())
}

fn model(path: &Path, vocabulary: Arc<Vocabulary>) -> Result<Tokenizer> {
    SentencePiece::new(read(path)?, vocabulary, &path.display().to_string()).map(Tokenizer::from)
}
