use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use attend_data::Position;
use candle_core::{Device, Tensor};
use safetensors::SafeTensors;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::health::Health;
use crate::log::timeless;
use crate::provenance::Provenance;
use crate::{Config, Error, Result, storage, toml_error};

/// Where a run stands, besides its tensors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Updates done.
    pub step: u64,
    /// The next batch.
    pub position: Position,
    /// Target tokens trained on.
    pub tokens: u64,
    /// Time spent training, over all resumptions.
    pub seconds: f64,
    pub best: Option<Best>,
    /// Validations since the best one.
    pub without_improvement: u64,
    pub unlogged: Unlogged,
    pub health: Health,
}

/// What has been added up since the last line of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Unlogged {
    pub loss: f64,
    pub tokens: u64,
    pub seconds: f64,
}

/// The best validation so far.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    pub step: u64,
    pub value: f64,
}

/// The checkpoints in a run's folder: `checkpoint-<step>/`, and `last` and `best` that point to two
/// of them.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    folder: PathBuf,
}

/// What a checkpoint holds.
pub struct Content<'a> {
    pub state: &'a State,
    pub provenance: &'a Provenance,
    pub config: &'a Config,
    /// The files of the bundle.
    pub bundle: Vec<(String, Vec<u8>)>,
    pub optimizer: &'a BTreeMap<String, Tensor>,
}

/// One checkpoint, read and found sound.
pub struct Checkpoint {
    pub folder: PathBuf,
    pub state: State,
    pub provenance: Provenance,
    files: BTreeMap<String, Vec<u8>>,
}

const CONFIG: &str = "config.toml";
const PROVENANCE: &str = "provenance.json";
const STATE: &str = "trainer_state.json";
const OPTIMIZER: &str = "optimizer.safetensors";
const MODEL: &str = "model.safetensors";

impl Checkpoints {
    pub fn of(folder: &Path) -> Self {
        Self {
            folder: folder.to_path_buf(),
        }
    }

    /// Writes a checkpoint: the files of a bundle, and what training needs to go on from it.
    pub fn write(&self, content: Content) -> Result<()> {
        let Content {
            state,
            provenance,
            config,
            bundle: mut files,
            optimizer,
        } = content;
        let folder = self.folder.join(format!("checkpoint-{}", state.step));
        let damaged = |problem: String| self.damaged(&folder, problem);
        let tensors = serialize(optimizer).map_err(|e| damaged(e.to_string()))?;
        let state_json = serde_json::to_vec_pretty(state).map_err(|e| damaged(e.to_string()))?;
        let provenance = serde_json::to_vec_pretty(provenance);
        let provenance = provenance.map_err(|e| damaged(e.to_string()))?;
        files.push((CONFIG.to_string(), config.to_toml().into_bytes()));
        files.push((OPTIMIZER.to_string(), tensors));
        files.push((PROVENANCE.to_string(), provenance));
        files.push((STATE.to_string(), state_json));
        storage::write_folder(&folder, &files)
    }

    /// What follows once a checkpoint is safe: `last` points to it, and `best` to the best; then older
    /// ones are removed, save the newest `keep` and the best.
    pub fn settle(&self, state: &State, keep: usize) -> Result<()> {
        self.point(state)?;
        self.rotate(state, keep)
    }

    /// Points `last` to the checkpoint of this state, and `best` to the best.
    pub fn point(&self, state: &State) -> Result<()> {
        let name = |step: u64| format!("checkpoint-{step}");
        storage::point(&self.folder.join("last"), &name(state.step))?;
        match state.best.map(|best| name(best.step)) {
            Some(best) if self.folder.join(&best).exists() => {
                storage::point(&self.folder.join("best"), &best)
            }
            _ => Ok(()),
        }
    }

    /// Removes the checkpoints before this state's, but for the newest and the best. Those after it
    /// were damaged, and are left for someone to look at until training comes to their step.
    fn rotate(&self, state: &State, keep: usize) -> Result<()> {
        let mut steps = self.steps()?;
        steps.retain(|&step| step <= state.step);
        let old = steps.iter().rev().skip(keep.max(1));
        for step in old.filter(|&&step| state.best.is_none_or(|best| best.step != step)) {
            storage::remove_folder(&self.folder.join(format!("checkpoint-{step}")))?;
        }
        Ok(())
    }

    /// The steps that have a checkpoint, rising.
    pub fn steps(&self) -> Result<Vec<u64>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|source| Error::Read {
                path: self.folder.clone(),
                source,
            })?,
        };
        let mut steps: Vec<u64> = entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let name = entry.file_name().into_string().ok()?;
                let step: u64 = name.strip_prefix("checkpoint-")?.parse().ok()?;
                let ours = name == format!("checkpoint-{step}") && entry.path().is_dir();
                ours.then_some(step)
            })
            .collect();
        steps.sort_unstable();
        Ok(steps)
    }

    /// Reads and verifies the checkpoint of a step.
    pub fn read(&self, step: u64) -> Result<Checkpoint> {
        let folder = self.folder.join(format!("checkpoint-{step}"));
        let files = storage::read_folder(&folder)?;
        let state = self.parse(&folder, &files, STATE)?;
        let provenance = self.parse(&folder, &files, PROVENANCE)?;
        Ok(Checkpoint {
            folder,
            state,
            provenance,
            files,
        })
    }

    fn parse<T: DeserializeOwned>(
        &self,
        folder: &Path,
        files: &BTreeMap<String, Vec<u8>>,
        name: &str,
    ) -> Result<T> {
        let json = files.get(name);
        let json = json.ok_or_else(|| self.damaged(folder, format!("no {name}")))?;
        let parsed = serde_json::from_slice(json);
        parsed.map_err(|error| self.damaged(&folder.join(name), error.to_string()))
    }

    /// The newest checkpoint that is sound; damaged ones are passed over with a warning.
    pub fn newest(&self) -> Result<Checkpoint> {
        let mut damage = None;
        for step in self.steps()?.into_iter().rev() {
            match self.read(step) {
                Ok(checkpoint) => return Ok(checkpoint),
                Err(error) => {
                    tracing::warn!("{error}; going back to the checkpoint before it");
                    damage = damage.or(Some(error));
                }
            }
        }
        Err(damage.unwrap_or_else(|| Error::NoCheckpoint(self.folder.clone())))
    }

    fn damaged(&self, path: &Path, problem: String) -> Error {
        Error::Damaged {
            path: path.to_path_buf(),
            problem,
        }
    }
}

impl Checkpoint {
    /// The config that it was trained with.
    pub fn config(&self) -> Result<Config> {
        let path = self.folder.join(CONFIG);
        let bytes = self
            .files
            .get(CONFIG)
            .map(Vec::as_slice)
            .unwrap_or_default();
        toml_error::parse(&String::from_utf8_lossy(bytes), &path.display().to_string())
    }

    /// The parameters to translate with.
    pub fn parameters(&self, device: &Device) -> Result<HashMap<String, Tensor>> {
        self.tensors(MODEL, device)
    }

    /// Whether its optimizer and its state, but for times, are those of another.
    pub(crate) fn has_state_of(&self, other: &Self) -> bool {
        let state = |checkpoint: &Self| {
            let json = checkpoint.files.get(STATE).map(Vec::as_slice);
            timeless(&String::from_utf8_lossy(json.unwrap_or_default()))
        };
        self.files.get(OPTIMIZER) == other.files.get(OPTIMIZER) && state(self) == state(other)
    }

    pub fn optimizer(&self, device: &Device) -> Result<HashMap<String, Tensor>> {
        self.tensors(OPTIMIZER, device)
    }

    fn tensors(&self, name: &str, device: &Device) -> Result<HashMap<String, Tensor>> {
        let damaged = |problem: String| Error::Damaged {
            path: self.folder.join(name),
            problem,
        };
        let bytes = self
            .files
            .get(name)
            .ok_or_else(|| damaged("missing".to_string()))?;
        let file = SafeTensors::deserialize(bytes).map_err(|error| damaged(error.to_string()))?;
        let tensors = file.tensors().into_iter().map(|(name, view)| {
            use candle_core::safetensors::Load;
            Ok((name, view.load(device)?))
        });
        tensors.collect()
    }
}

fn serialize(tensors: &BTreeMap<String, Tensor>) -> candle_core::Result<Vec<u8>> {
    Ok(safetensors::serialize(tensors, None)?)
}
