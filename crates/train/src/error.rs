use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::{Difference, MemorySize};

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
    #[error("the {what} data is not what {} was trained with", folder.display())]
    DataChanged {
        folder: PathBuf,
        what: &'static str,
        key: &'static str,
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
    #[error("another training{} writes {}", process.map(|id| format!(" (process {id})")).unwrap_or_default(), folder.display())]
    Locked {
        folder: PathBuf,
        process: Option<u32>,
    },
    #[error("step {step}: what was to be saved is not finite; it was not saved")]
    NotFinite { step: u64 },
    #[error(
        "{in_a_row} updates in a row were skipped, the last at step {step}: loss {loss}, gradient norm {norm}; \
         norms before it: {history}; its sentence pairs are number {pairs} of the training data; \
         the last checkpoint is of step {saved}"
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
        "train.max_memory is {limit}, but the model, its gradients and its moments alone take {needed}"
    )]
    LittleMemory {
        limit: MemorySize,
        needed: MemorySize,
    },
    #[error("the training in {} failed: {talk}", run.display())]
    Experiment { run: PathBuf, talk: String },
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
            Error::DataChanged { key, .. } => format!(
                "put the files of {key} back as they were, start a new run, or go on with what is there now by `--allow {key}`"
            ),
            Error::Diverged { .. } | Error::NotFinite { .. } => {
                "look at those sentences; or training diverged: set train.clip_norm, lower the learning rate or lengthen its warmup, for a new run or by `train resume RUN --set train.clip_norm=1 --allow train.clip_norm`".to_string()
            }
            Error::Taken(_) => "give -o a folder that does not exist yet".to_string(),
            Error::ConfigChanged { differences, .. } => format!(
                "put them back as they were, start a new run, or allow each, as in `--allow {}`",
                differences.first().map_or("KEY", |difference| &difference.key)
            ),
            Error::OtherModel { .. } => {
                "put [model] and train.moving_average back as they were, or start a new run".to_string()
            }
            Error::Locked { .. } => {
                "wait for it or stop it; two cannot write one run".to_string()
            }
            Error::LittleMemory { .. } => {
                "raise train.max_memory, or make the model or its vocabulary smaller".to_string()
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

fn list(differences: &[Difference]) -> String {
    let differences: Vec<String> = differences.iter().map(Difference::to_string).collect();
    differences.join("; ")
}
