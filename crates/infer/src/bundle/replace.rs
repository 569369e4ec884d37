//! Replaces the search settings of a bundle in its place: the folder as a whole is replaced, so that it is sound at any
//! moment.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Contents, Format, GENERATION_CONFIG, GenerationConfig, Manifest, json};
use crate::run::{LockState, RunFolder};
use crate::staging::Staging;
use crate::{DecodeConfig, Error, Result};

impl Contents {
    /// An error if [`Contents::set_decode`] cannot be done, before the work whose result it would write.
    pub fn check_decode_settable(&self) -> Result<()> {
        let usage = |message: String, hint: &str| Error::Usage {
            message,
            hint: hint.into(),
        };
        let folder = self.folder.display();
        if Format::of(&self.folder)? != Format::Attend {
            return Err(usage(
                format!("{folder} is the model of another program"),
                "make it a bundle first: infer import MODEL -o FOLDER",
            ));
        }
        let place = real(&self.folder)?;
        let run = RunFolder::new(place.parent().unwrap_or(Path::new("")));
        if matches!(run.lock(), LockState::Held { .. }) {
            return Err(usage(
                format!("{} is being trained", run.path().display()),
                "wait for the end of the training",
            ));
        }
        Staging::in_place_of(&place).map(drop)
    }

    /// Writes other search settings to the folder that was opened. All its other files stay as they are.
    pub fn set_decode(&self, decode: &DecodeConfig) -> Result<()> {
        self.check_decode_settable()?;
        // `best` is a link: what it leads to is replaced.
        let folder = real(&self.folder)?;
        let generation = json(&GenerationConfig::new(decode, self.tokenizers.target()));
        let mut files = vec![(GENERATION_CONFIG.to_string(), generation)];
        if let Some(mut manifest) = Manifest::read(&folder)? {
            manifest.files.extend(Manifest::of(&files).files);
            files.push((Manifest::NAME.to_string(), manifest.to_json()));
        }
        let staging = Staging::in_place_of(&folder)?;
        let keep_others = || {
            for entry in fs::read_dir(&folder)? {
                let entry = entry?;
                let name = entry.file_name();
                if files.iter().all(|(new, _)| name != **new) {
                    keep(&entry.path(), &staging.path().join(name))?;
                }
            }
            Ok(())
        };
        keep_others().map_err(|source| Error::Write {
            path: folder.clone(),
            source,
        })?;
        staging.write(&files)?;
        staging.exchange()
    }
}

/// The folder that a path leads to.
fn real(folder: &Path) -> Result<PathBuf> {
    folder
        .canonicalize()
        .map_err(|source| Error::read(folder, source))
}

/// Lets a file or a folder have another name, too: without a copy where the file system can do that.
fn keep(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_dir() {
        fs::create_dir(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            keep(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    fs::hard_link(from, to).or_else(|_| {
        fs::copy(from, to)?;
        fs::File::open(to)?.sync_all()
    })
}
