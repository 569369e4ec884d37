//! Which folder is meant: a run is as good a name for a model as one of its checkpoints.

use std::path::{Path, PathBuf};

use super::{Bundle, CONFIG, GENERATION_CONFIG, Manifest};
use crate::run::{Checkpoint, RunFolder};
use crate::{Error, Result};

/// The folder with the files of the bundle that `folder` stands for.
pub(super) fn resolve(folder: &Path) -> Result<PathBuf> {
    if !folder.is_dir() {
        return Err(Error::NoFolder(folder.into()));
    }
    if folder.join(CONFIG).exists() {
        return Ok(folder.into());
    }
    if let Some(checkpoint) = RunFolder::new(folder).best_or_last()? {
        return Ok(checkpoint);
    }
    // A folder of weights without its config is a damaged bundle rather than a run.
    if folder.join(Bundle::WEIGHTS).exists() {
        Err(Error::MissingFile(folder.join(CONFIG)))
    } else {
        Err(Error::NoCheckpoint(folder.into()))
    }
}

/// Compares what translating reads with the folder's manifest, if it has one: a bundle made by
/// others need not.
pub(super) fn verify(folder: &Path) -> Result<()> {
    let Some(manifest) = Manifest::read(folder)? else {
        return Ok(());
    };
    for (name, entry) in &manifest.files {
        if !Checkpoint::TRAINER_FILES.contains(&&**name) {
            entry.verify(&folder.join(name))?;
        }
    }
    for name in [CONFIG, GENERATION_CONFIG, Bundle::WEIGHTS] {
        if !manifest.files.contains_key(name) {
            return Err(Error::Damaged {
                path: folder.join(Manifest::NAME),
                message: format!("it does not list {name}"),
            });
        }
    }
    Ok(())
}
