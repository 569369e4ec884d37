//! Which folder is meant: a run is as good a name for a model as one of its checkpoints.

use std::fs;
use std::path::{Path, PathBuf};

use super::CONFIG;
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
