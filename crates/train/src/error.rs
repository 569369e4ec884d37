use std::io;
use std::path::{Path, PathBuf};

use attend_infer::Error as InferError;
use thiserror::Error;

use crate::{Difference, MemorySize};

pub type Result<T> = std::result::Result<T, Error>;

/// Each message is one line that says what and where; [`Error::hint`] says how to fix it.
#[derive(Debug, Error)]
pub enum Error {
    #[error(transparent)]
    Comm(#[from] attend_comm::Error),
    #[error(
        "rank {rank} has other parameters than rank 0 after step {step}: its memory or network is faulty"
    )]
    Drifted { rank: usize, step: u64 },
    #[error("rank {rank} has another {what} than the other ranks")]
    RanksDiffer { rank: usize, what: String },
    #[error("{0} needs sources that are text")]
    NotText(&'static str),
    #[error("{} does not translate text", .0.display())]
    NoTranslator(PathBuf),
    #[error(
        "{}: no translation is fit to be trained on: all are empty, cut off or repeat themselves",
        .0.display()
    )]
    NothingTaught(PathBuf),
    #[error("{place}: {message}")]
    Config {
        place: String,
        message: String,
        hint: Option<String>,
    },
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{} already holds a run", .0.display())]
    UsedFolder(PathBuf),
    #[error("{} has {found} checkpoints, {asked} were asked for", folder.display())]
    FewCheckpoints {
        folder: PathBuf,
        found: usize,
        asked: usize,
    },
    #[error("only {validated} of the {found} checkpoints of {} were validated", folder.display())]
    FewValidated {
        folder: PathBuf,
        found: usize,
        validated: usize,
    },
    #[error("the config of {} names no validation data", .0.display())]
    NoValidation(PathBuf),
    #[error("the {what} data is not what {} was trained with{}", folder.display(), changed(corpora))]
    DataChanged {
        folder: PathBuf,
        what: &'static str,
        key: &'static str,
        /// The corpora that have changed.
        corpora: Vec<String>,
    },
    #[error("{} already exists, and is not a bundle that `train average` wrote", .0.display())]
    Taken(PathBuf),
    #[error("the config is not what {} was trained with: {}", folder.display(), list(differences))]
    ConfigChanged {
        folder: PathBuf,
        differences: Vec<Difference>,
    },
    #[error("{}/config.toml does not describe its model: {problem}", folder.display())]
    OtherModel { folder: PathBuf, problem: String },
    #[error("{} is locked by another training process{}", folder.display(), process.map(|id| format!(" (pid {id})")).unwrap_or_default())]
    Locked {
        folder: PathBuf,
        process: Option<u32>,
    },
    #[error("step {step}: the parameters or the optimizer state are not finite; nothing was saved")]
    NotFinite { step: u64 },
    #[error(
        "{in_a_row} updates in a row were skipped, the last at step {step}: loss {loss}, gradient norm {norm}; \
         last gradient norms: {history}; sentence pairs of the training data in this update: {pairs}; \
         last checkpoint: step {saved}"
    )]
    Diverged {
        step: u64,
        in_a_row: u64,
        loss: f64,
        norm: f64,
        history: String,
        pairs: String,
        saved: u64,
    },
    #[error(
        "train.max_memory is {limit}, but the program, the data, the model, its gradients and its moments take {needed}"
    )]
    MemoryLimit {
        limit: MemorySize,
        needed: MemorySize,
    },
    #[error(
        "this training needs about {} of memory, but this machine has {}",
        needed.rounded(), available.rounded()
    )]
    TooLarge {
        needed: MemorySize,
        available: MemorySize,
    },
    #[error("{} is not empty, and is not the folder of a run", .0.display())]
    ForeignFolder(PathBuf),
    #[error("{} was removed or replaced while it was trained in", .0.display())]
    FolderGone(PathBuf),
    #[error("cannot {action} {}: {source}", program.display())]
    Process {
        /// Such as "start".
        action: &'static str,
        program: PathBuf,
        source: io::Error,
    },
    #[error("the training in {} failed: {stderr}", run.display())]
    TrainingFailed { run: PathBuf, stderr: String },
    #[error("interrupted by a signal")]
    Interrupted,
    #[error("no gradient reached `{0}`")]
    NoGradient(String),
    #[error(transparent)]
    Data(#[from] attend_data::Error),
    #[error(transparent)]
    Infer(#[from] InferError),
    #[error(transparent)]
    Tensor(#[from] candle_core::Error),
}

impl From<attend_config::ConfigError> for Error {
    fn from(error: attend_config::ConfigError) -> Self {
        Error::Config {
            place: error.key,
            message: error.message,
            hint: Some(error.hint),
        }
    }
}

impl Error {
    /// A mistake in a command line.
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        InferError::Usage {
            message: message.into(),
            hint: hint.into(),
        }
        .into()
    }

    pub(crate) fn no_checkpoint(folder: &Path) -> Self {
        InferError::NoCheckpoint(folder.to_path_buf()).into()
    }

    pub(crate) fn damaged(path: PathBuf, message: String) -> Self {
        InferError::Damaged { path, message }.into()
    }

    /// How to fix it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Error::Config { hint, .. } => return hint.clone(),
            Error::Comm(error) => return error.hint(),
            Error::Drifted { .. } => {
                "check the memory and the network of that rank's machine, and resume the run from its last checkpoint".to_string()
            }
            Error::RanksDiffer { .. } => {
                "all ranks must see the same files: put the config, the data and the run on a file system that all machines share".to_string()
            }
            Error::NotText(_) => "leave data.source_kind out".to_string(),
            Error::NothingTaught(_) => {
                "train the model for longer, and look at what `infer translate` says".to_string()
            }
            Error::NoTranslator(_) => "give a model whose source is text".to_string(),
            Error::Data(error) => return error.hint(),
            Error::Infer(InferError::NoCheckpoint(_)) => {
                "start the run with `train run CONFIG`, with `--overwrite` if the folder was used".to_string()
            }
            Error::Infer(InferError::Damaged { .. } | InferError::MissingFile(_)) => {
                "restore it from a copy, or remove that checkpoint's folder to continue from an earlier one".to_string()
            }
            Error::Infer(error) => return error.hint(),
            Error::UsedFolder(path) => format!(
                "continue it with `train resume {}`, write elsewhere with `--set out=…`, or start over with `--overwrite`",
                path.display()
            ),
            Error::DataChanged { key, .. } => format!(
                "restore the files of {key}, start a new run, or continue with the new data by `--allow {key}`"
            ),
            Error::Diverged { .. } | Error::NotFinite { .. } => {
                "check those sentence pairs; if training diverged, set train.clip_norm, lower the learning rate or lengthen its warmup, in a new run or by `train resume RUN --set train.clip_norm=1 --allow train.clip_norm`".to_string()
            }
            Error::Taken(_) => "give -o a folder that does not exist yet".to_string(),
            Error::ConfigChanged { differences, .. } => format!(
                "restore them, start a new run, or allow each of them, as in `--allow {}`",
                differences.first().map_or("KEY", |difference| &difference.key)
            ),
            Error::OtherModel { .. } => {
                "restore [model] and train.moving_average, or start a new run".to_string()
            }
            Error::Locked { .. } => {
                "wait for that process or stop it; only one process can write a run".to_string()
            }
            Error::MemoryLimit { .. } => {
                "raise train.max_memory, or make the model or its vocabulary smaller".to_string()
            }
            Error::TooLarge { .. } => {
                "make the model or its vocabulary smaller, lower data.batch_tokens, set train.max_memory to compute batches in parts, or try it anyway with `--ignore-memory`".to_string()
            }
            Error::ForeignFolder(_) => {
                "choose a new or an empty folder for `out`".to_string()
            }
            Error::FolderGone(_) => {
                "nothing more can be saved there: start a new run, or resume a copy of this one".to_string()
            }
            Error::NoValidation(_) => "leave out --choose".to_string(),
            Error::FewValidated { .. } => {
                "ask for fewer, or train with train.save_every a multiple of train.validate_every"
                    .to_string()
            }
            Error::FewCheckpoints { .. } => {
                "ask for fewer; train.keep says how many a run keeps".to_string()
            }
            Error::Read { .. } => {
                "check the path; it is relative to the folder in which the command runs".to_string()
            }
            Error::Write { .. } => {
                "check that `out` is a folder that can be written, on a disk with room".to_string()
            }
            _ => return None,
        };
        Some(hint)
    }
}

fn list(differences: &[Difference]) -> String {
    let differences: Vec<String> = differences.iter().map(Difference::to_string).collect();
    differences.join("; ")
}

fn changed(corpora: &[String]) -> String {
    match corpora {
        [] => String::new(),
        corpora => format!("; changed: {}", corpora.join(", ")),
    }
}
