use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};
use serde::de::DeserializeOwned;

use super::times::without_times;
use super::{Provenance, TrainerState};
use crate::bundle::{Bundle, Manifest, sha256};
use crate::weights::parse_tensors;
use crate::{Error, Result};

/// One checkpoint. Every file has been read and compared with the checkpoint's manifest.
#[derive(Debug)]
pub struct Checkpoint {
    pub folder: PathBuf,
    pub state: TrainerState,
    pub provenance: Provenance,
    files: BTreeMap<String, Vec<u8>>,
}

impl Checkpoint {
    pub const CONFIG: &str = "config.toml";
    pub const OPTIMIZER: &str = "optimizer.safetensors";
    pub const PROVENANCE: &str = "provenance.json";
    pub const STATE: &str = "trainer_state.json";

    /// The files of a checkpoint that only the trainer needs. The others are those of a bundle.
    pub const TRAINER_FILES: [&str; 4] =
        [Self::CONFIG, Self::OPTIMIZER, Self::PROVENANCE, Self::STATE];

    /// Reads and verifies a checkpoint. The error names the file that is missing or damaged.
    pub fn read(folder: &Path) -> Result<Self> {
        let files = Manifest::read_files(folder)?;
        let state = parse(folder, &files, Self::STATE)?;
        let provenance = parse(folder, &files, Self::PROVENANCE)?;
        Ok(Self {
            folder: folder.to_path_buf(),
            state,
            provenance,
            files,
        })
    }

    /// The text of the config that it was trained with.
    pub fn config(&self) -> Result<&str> {
        let bytes = bytes(&self.folder, &self.files, Self::CONFIG)?;
        std::str::from_utf8(bytes).map_err(|error| Error::Damaged {
            path: self.folder.join(Self::CONFIG),
            message: error.to_string(),
        })
    }

    /// The parameters to translate with.
    pub fn parameters(&self, device: &Device) -> Result<HashMap<String, Tensor>> {
        self.tensors(Bundle::WEIGHTS, device)
    }

    /// What the optimizer keeps beside the parameters.
    pub fn optimizer(&self, device: &Device) -> Result<HashMap<String, Tensor>> {
        self.tensors(Self::OPTIMIZER, device)
    }

    fn tensors(&self, name: &str, device: &Device) -> Result<HashMap<String, Tensor>> {
        let bytes = bytes(&self.folder, &self.files, name)?;
        parse_tensors(bytes, &self.folder.join(name), device)
    }

    /// Whether the optimizer and the state, except for times, are the same as another's.
    pub fn has_state_of(&self, other: &Self) -> bool {
        let optimizer = |checkpoint: &Self| checkpoint.hash(Self::OPTIMIZER);
        optimizer(self) == optimizer(other)
            && self.state_without_times() == other.state_without_times()
    }

    /// A hash of the parameters, the optimizer and the state, except for times.
    pub fn fingerprint(&self) -> String {
        let state = serde_json::Value::from(self.state_without_times()).to_string();
        let hashes = [
            self.hash(Bundle::WEIGHTS),
            self.hash(Self::OPTIMIZER),
            sha256(state.as_bytes()),
        ];
        sha256(hashes.concat().as_bytes())
    }

    fn hash(&self, name: &str) -> String {
        sha256(self.files.get(name).map(Vec::as_slice).unwrap_or_default())
    }

    fn state_without_times(&self) -> Vec<serde_json::Value> {
        let json = self.files.get(Self::STATE).map(Vec::as_slice);
        without_times(json.unwrap_or_default())
    }
}

fn bytes<'a>(folder: &Path, files: &'a BTreeMap<String, Vec<u8>>, name: &str) -> Result<&'a [u8]> {
    let bytes = files.get(name).map(Vec::as_slice);
    bytes.ok_or_else(|| Error::MissingFile(folder.join(name)))
}

fn parse<T: DeserializeOwned>(
    folder: &Path,
    files: &BTreeMap<String, Vec<u8>>,
    name: &str,
) -> Result<T> {
    let parsed = serde_json::from_slice(bytes(folder, files, name)?);
    parsed.map_err(|error| Error::Damaged {
        path: folder.join(name),
        message: error.to_string(),
    })
}
