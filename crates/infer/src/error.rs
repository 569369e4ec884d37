use std::io;
use std::path::PathBuf;

use attend_model::{ConfigError, LoadError};

use crate::bundle::FORMAT;
use crate::metrics::MetricError;

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Each message is one line that says what and where; [`Error::hint`] says how to fix it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Text or a tokenizer could not be read or used.
    #[error(transparent)]
    Data(#[from] attend_data::Error),

    /// A setting that cannot be.
    #[error(transparent)]
    Config(#[from] ConfigError),

    /// Two corpora that cannot be scored against each other.
    #[error(transparent)]
    Metric(#[from] MetricError),

    /// A tensor operation failed.
    #[error("the model failed: {0}")]
    Model(#[from] candle_core::Error),

    #[error("no such folder: {}", .0.display())]
    NoFolder(PathBuf),

    /// A folder that is neither a run with a checkpoint nor a bundle.
    #[error("`{}` has no checkpoint", .0.display())]
    NoCheckpoint(PathBuf),

    /// `best` or `last` of a run points at nothing.
    #[error("`{}` points to `{}`, which is not there", link.display(), target.display())]
    Dangling { link: PathBuf, target: PathBuf },

    #[error("no such file: {}", .0.display())]
    MissingFile(PathBuf),

    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },

    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },

    /// A file of a bundle that does not hold what it should.
    #[error("{}: {message}", path.display())]
    Damaged { path: PathBuf, message: String },

    /// A file made by Python's pickle, which runs code when it is read.
    #[error("{}: a pickle file, which is not read because reading it runs code", .0.display())]
    Pickle(PathBuf),

    /// A bundle written by another version of the format.
    #[error("{}: format version {found}, where this program reads {FORMAT}", path.display())]
    Format { path: PathBuf, found: u64 },

    /// Weights that are not those of the model in `config.json`.
    #[error("{}: {source}", path.display())]
    Weights { path: PathBuf, source: LoadError },

    /// Tokenizers that are not those of the model in `config.json`.
    #[error("{}: the tokenizers have {found}, where config.json says {expected}", folder.display())]
    Vocabularies {
        folder: PathBuf,
        found: String,
        expected: String,
    },

    /// The model computes NaN or infinity.
    #[error("the model's scores are not numbers: its weights hold NaN or are far too large")]
    NotANumber,

    /// A model that was asked what it attends to, and attends to nothing.
    #[error("the model has no attention to draw")]
    NoAttention,

    /// A picture could not be made of pixels.
    #[error("cannot draw the picture: {message}")]
    Draw { message: String },

    /// A device that was asked for and cannot be had.
    #[error("{message}")]
    Device { message: String, hint: String },

    /// Options that do not go together.
    #[error("{message}")]
    Usage { message: String, hint: String },
}

impl Error {
    /// How to fix it, where that can be told.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Data(error) => return error.hint(),
            Self::Config(error) => error.hint.clone(),
            Self::NoFolder(_) => {
                "give the folder that `train` wrote, as `out` in its config names it".into()
            }
            Self::NoCheckpoint(folder) => format!(
                "train it first, or go on with a training that was stopped before its first \
                 checkpoint: `train resume {}`",
                folder.display()
            ),
            Self::Dangling { link, .. } => format!(
                "name a checkpoint that is there: `ls -d {}/checkpoint-*`",
                link.parent().unwrap_or(link).display()
            ),
            Self::MissingFile(_) | Self::Damaged { .. } => {
                "the folder is not whole: copy it again, or use another checkpoint".into()
            }
            Self::Pickle(_) => "convert it to safetensors first".into(),
            Self::Format { found, .. } if *found > FORMAT => {
                "it was written by a newer version: update this program".into()
            }
            Self::Format { .. } => "it was written by an older version: use that one".into(),
            Self::Weights { .. } | Self::Vocabularies { .. } => {
                "the files of a bundle belong together: copy the whole folder".into()
            }
            Self::NotANumber => "the training has diverged: use an earlier checkpoint, or train \
                 again with a lower learning rate"
                .into(),
            Self::NoAttention => "it was trained with `attention = \"none\"`: train one that has \
                 attention, such as `attention = \"luong\"`"
                .into(),
            Self::Draw { .. } => "draw it as .svg, which needs no pixels".into(),
            Self::Device { hint, .. } | Self::Usage { hint, .. } => hint.clone(),
            Self::Metric(_) | Self::Model(_) | Self::Read { .. } | Self::Write { .. } => {
                return None;
            }
        };
        Some(hint)
    }

    /// Whether the reader of our output has gone, as in `infer translate … | head`.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Write { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }

    pub(crate) fn read(path: impl Into<PathBuf>, source: io::Error) -> Self {
        let path = path.into();
        match source.kind() {
            io::ErrorKind::NotFound => Self::MissingFile(path),
            _ => Self::Read { path, source },
        }
    }
}
