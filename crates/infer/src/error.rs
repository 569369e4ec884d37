use std::io;
use std::path::PathBuf;

use attend_config::ConfigError;
use attend_model::LoadError;

use crate::bundle::FORMAT;
use crate::metrics::MetricError;
use crate::weights::NAMES;

/// The result of this crate's fallible functions.
pub type Result<T> = std::result::Result<T, Error>;

/// Each message is one line with what is wrong and where. [`Error::hint`] says how to fix it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Text or a tokenizer could not be read or used.
    #[error(transparent)]
    Data(#[from] attend_data::Error),

    /// A setting has an invalid value.
    #[error(transparent)]
    Config(#[from] ConfigError),

    /// Hypotheses and references cannot be scored against each other.
    #[error(transparent)]
    Metric(#[from] MetricError),

    /// A file of the Hugging Face Hub could not be had.
    #[cfg(feature = "hub")]
    #[error(transparent)]
    Hub(#[from] attend_hub::Error),

    /// A tensor operation failed.
    #[error("a tensor operation failed: {0}")]
    Model(#[from] candle_core::Error),

    #[error("no such folder: {}", .0.display())]
    NoFolder(PathBuf),

    /// The folder is neither a run with a checkpoint nor a bundle.
    #[error("`{}` has no checkpoint", .0.display())]
    NoCheckpoint(PathBuf),

    /// `best` or `last` of a run is a dangling link.
    #[error("`{}` points to `{}`, which does not exist", link.display(), target.display())]
    Dangling { link: PathBuf, target: PathBuf },

    #[error("no such file: {}", .0.display())]
    MissingFile(PathBuf),

    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },

    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },

    /// A file of a bundle has invalid contents.
    #[error("{}: {message}", path.display())]
    Damaged { path: PathBuf, message: String },

    /// A Python pickle file. It is not loaded, because unpickling can run arbitrary code.
    #[error("{}: a pickle file is not loaded, because it can run arbitrary code", .0.display())]
    Pickle(PathBuf),

    /// The folder has none of the files that weights can be in.
    #[error("{} has no weights: none of {} is there", .0.display(), NAMES.join(", "))]
    NoWeights(PathBuf),

    /// The file was cloned without its contents.
    #[error("{}: a Git LFS pointer, not the file itself", .0.display())]
    LfsPointer(PathBuf),

    /// A file of weights has something else than tensors, or has them in a form that is not read.
    #[error("{}: {message}", path.display())]
    Refused { path: PathBuf, message: String },

    /// An export does not translate as the model does.
    #[error("the export of {} translates otherwise than the model: {message}", folder.display())]
    ExportDiffers { folder: PathBuf, message: String },

    /// An output folder has files already.
    #[error("{} exists and is not empty", .0.display())]
    Taken(PathBuf),

    /// The bundle has an unsupported format version.
    #[error("{}: format version {found}, but this program reads version {FORMAT}", path.display())]
    Format { path: PathBuf, found: u64 },

    /// The weights do not match the model in `config.json`.
    #[error("{}: {source}", path.display())]
    Weights { path: PathBuf, source: LoadError },

    /// The tokenizers do not match the model in `config.json`.
    #[error("{}: the tokenizers have {found}, but config.json says {expected}", folder.display())]
    Vocabularies {
        folder: PathBuf,
        found: String,
        expected: String,
    },

    /// The model cannot be written in another program's format.
    #[error("the model cannot be exported: {what}")]
    Unexportable { what: String, hint: String },

    /// Another program's model is of a kind that Attend does not have.
    #[error("{}: {what}", path.display())]
    Unsupported { path: PathBuf, what: String },

    /// The file that a line of the input names cannot be read.
    #[error("{place}: {source}")]
    Line {
        /// Which of the lines that were given, counted from 0.
        index: usize,
        /// Where the line is, for people: `line 3`, or with the name of the input.
        place: String,
        source: attend_data::Error,
    },

    /// The model's output contains NaN or infinity.
    #[error("the model's output is not finite: its weights contain NaN or are far too large")]
    NotANumber,

    /// An [`crate::Observer`] cancelled the translation.
    #[error("cancelled")]
    Cancelled,

    /// The [`crate::Engine`] that was asked has ended.
    #[error("stopped: nothing more is translated")]
    Stopped,

    /// Something panicked while it computed for one who asked an [`crate::Engine`].
    #[error("the translation failed: {0}")]
    Panicked(String),

    /// Attention maps were requested of a model without attention.
    #[error("the model has no attention to draw")]
    NoAttention,

    /// Words were to be linked by a model without attention to the source.
    #[error("the model has no attention to the source, so words cannot be aligned")]
    NotAligned,

    /// The picture could not be rendered as PNG.
    #[error("cannot render the picture: {message}")]
    Draw { message: String },

    /// Invalid arguments.
    #[error("{message}")]
    Usage { message: String, hint: String },
}

impl Error {
    /// How to fix the error, if known.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Data(error) | Self::Line { source: error, .. } => return error.hint(),
            Self::Config(error) => error.hint.clone(),
            #[cfg(feature = "hub")]
            Self::Hub(error) => return error.hint(),
            Self::NoFolder(_) => {
                "give the folder that `train` wrote: `out` in the training config".into()
            }
            Self::NoCheckpoint(folder) => format!(
                "train it first, or resume a run that was stopped before its first checkpoint: \
                 `train resume {}`",
                folder.display()
            ),
            Self::Dangling { link, .. } => format!(
                "give an existing checkpoint; to list them: `ls -d {}/checkpoint-*`",
                link.parent().unwrap_or(link).display()
            ),
            Self::MissingFile(_) | Self::Damaged { .. } => {
                "the folder is incomplete or damaged: copy it again, or use another checkpoint"
                    .into()
            }
            Self::Pickle(_) => "convert the file to safetensors".into(),
            Self::NoWeights(_) => "give the folder of a model in the layout of Hugging Face".into(),
            Self::LfsPointer(_) => "fetch the contents: `git lfs pull` in its folder".into(),
            Self::Refused { .. } => {
                "save the tensors alone, best as safetensors, where you trust the file".into()
            }
            Self::Format { found, .. } if *found > FORMAT => {
                "the bundle was written by a newer version: update this program".into()
            }
            Self::Format { .. } => {
                "the bundle was written by an older version: use that version to read it".into()
            }
            Self::Weights { .. } | Self::Vocabularies { .. } => {
                "the files of a bundle must match: copy the whole folder again".into()
            }
            Self::NotANumber => "the training diverged: use an earlier checkpoint, or train again \
                 with a lower learning rate"
                .into(),
            Self::NotAligned => "give a model with attention, such as a Transformer".into(),
            Self::NoAttention => "the model was trained with `attention = \"none\"`: train one \
                 with attention, such as `attention = \"luong\"`"
                .into(),
            Self::Draw { .. } => "write an .svg file instead".into(),
            Self::Usage { hint, .. } | Self::Unexportable { hint, .. } => hint.clone(),
            Self::Unsupported { .. } => {
                "Attend reads Transformers of MarianMT, Pegasus and CTranslate2, as \
                 far as they compute what its own do"
                    .into()
            }
            Self::ExportDiffers { .. } => {
                "nothing was written; please report this with the model's config".into()
            }
            Self::Taken(_) => "give -o a folder that does not exist yet".into(),
            Self::Metric(_)
            | Self::Model(_)
            | Self::Read { .. }
            | Self::Write { .. }
            | Self::Cancelled
            | Self::Stopped
            | Self::Panicked(_) => return None,
        };
        Some(hint)
    }

    /// Whether the reader closed the output pipe, as in `infer translate … | head`.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Write { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }

    /// What a panic says.
    pub(crate) fn panicked(panic: &(dyn std::any::Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Self::Panicked(text.unwrap_or_else(|| "unknown reason".into()))
    }

    pub(crate) fn read(path: impl Into<PathBuf>, source: io::Error) -> Self {
        let path = path.into();
        match source.kind() {
            io::ErrorKind::NotFound => Self::MissingFile(path),
            _ => Self::Read { path, source },
        }
    }
}
