//! Which folder is meant: a run is as good a name for a model as one of its checkpoints.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::{CONFIG, Manifest};
use crate::{Error, Result};

/// The folder with the files of the bundle that `folder` stands for.
pub(super) fn resolve(folder: &Path) -> Result<PathBuf> {
    if !folder.is_dir() {
        return Err(Error::NoFolder(folder.into()));
    }
    if folder.join(CONFIG).exists() {
        return Ok(folder.into());
    }
    for name in ["best", "last"] {
        let link = folder.join(name);
        if link.is_dir() {
            return Ok(link);
        }
        if let Ok(target) = fs::read_link(&link) {
            return Err(Error::Dangling { link, target });
        }
    }
    // A folder of weights without its config is a damaged bundle rather than a run.
    match folder.join(super::WEIGHTS).exists() {
        true => Err(Error::MissingFile(folder.join(CONFIG))),
        false => Err(Error::NoCheckpoint(folder.into())),
    }
}

/// Compares what translating reads with the folder's manifest, if it has one: a bundle made by
/// others need not.
pub(super) fn verify(folder: &Path) -> Result<()> {
    let path = folder.join(Manifest::NAME);
    let damaged = |path: PathBuf, message: String| Err(Error::Damaged { path, message });
    let manifest = match fs::read(&path) {
        Ok(json) => Manifest::parse(&json),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => Err(error.to_string()),
    };
    let manifest = match manifest {
        Ok(manifest) => manifest,
        Err(message) => return damaged(path, message),
    };
    let trainers = [
        "config.toml",
        "optimizer.safetensors",
        "provenance.json",
        "trainer_state.json",
    ];
    for (name, entry) in manifest.files {
        if trainers.contains(&&*name) {
            continue;
        }
        let path = folder.join(name);
        match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::MissingFile(path));
            }
            Err(error) => return damaged(path, error.to_string()),
            Ok(bytes) => {
                if let Some(message) = entry.problem(&bytes) {
                    return damaged(path, message);
                }
            }
        }
    }
    Ok(())
}
