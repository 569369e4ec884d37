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
    #[error("{} already exists, and is not a bundle that `train average` wrote", .0.display())]
    Taken(PathBuf),
    #[error("{}/config.toml no longer describes its model: {problem}", folder.display())]
    ConfigChanged { folder: PathBuf, problem: String },
    #[error("step {step}: parameters are not finite; they were not saved")]
    NotFinite { step: u64 },
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
            Error::Diverged { .. } | Error::NotFinite { .. } => {
                "training diverged: lower train.schedule.learning_rate, lengthen its warmup or set train.clip_norm, in the run's config.toml to resume it or for a new run".to_string()
            }
            Error::Taken(_) => "give -o a folder that does not exist yet".to_string(),
            Error::ConfigChanged { .. } => {
                "put [model] and train.moving_average back as they were, or start a new run".to_string()
            }
            Error::FewCheckpoints { .. } => {
                "ask for fewer with --last; train.keep says how many a run keeps".to_string()
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
