use std::io;
use std::path::PathBuf;

use thiserror::Error;

pub type Result<T> = std::result::Result<T, Error>;

/// Each message is one line that says what and where; [`Error::hint`] says how to fix it.
#[derive(Debug, Error)]
pub enum Error {
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
    #[error("{} has no checkpoint", .0.display())]
    NoCheckpoint(PathBuf),
    #[error("{} has {found} checkpoints, {asked} were asked for", folder.display())]
    FewCheckpoints {
        folder: PathBuf,
        found: usize,
        asked: usize,
    },
    #[error("{}: {problem}", path.display())]
    Damaged { path: PathBuf, problem: String },
    #[error("the training data is not what {} was trained on", .0.display())]
    DataChanged(PathBuf),
    #[error("step {step}: the norm of the gradient is {norm}")]
    Diverged { step: u64, norm: f64 },
    #[error("no gradient reached `{0}`")]
    NoGradient(String),
    #[error(transparent)]
    Data(#[from] attend_data::Error),
    #[error(transparent)]
    Infer(#[from] attend_infer::Error),
    #[error(transparent)]
    Tensor(#[from] candle_core::Error),
}

impl From<attend_model::ConfigError> for Error {
    fn from(error: attend_model::ConfigError) -> Self {
        Error::Config {
            place: error.key.to_string(),
            message: error.message,
            hint: Some(error.hint),
        }
    }
}

impl Error {
    /// How to fix it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Error::Config { hint, .. } => return hint.clone(),
            Error::Data(error) => return error.hint(),
            Error::Infer(error) => return error.hint(),
            Error::UsedFolder(path) => format!(
                "continue it with `train resume {}`, write elsewhere with `--set out=…`, or start over with `--overwrite`",
                path.display()
            ),
            Error::NoCheckpoint(_) => {
                "start the run with `train run CONFIG`, with `--overwrite` if the folder was used".to_string()
            }
            Error::Damaged { .. } => {
                "restore it from a copy, or remove that checkpoint's folder to go on from an earlier one".to_string()
            }
            Error::DataChanged(_) => {
                "put the files of [data] back as they were, or start a new run".to_string()
            }
            Error::Diverged { .. } => {
                "training diverged; resume from the last checkpoint with a lower train.schedule.learning_rate, a longer warmup or train.clip_norm".to_string()
            }
            _ => return None,
        };
        Some(hint)
    }
}
