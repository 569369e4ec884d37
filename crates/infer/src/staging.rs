use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::{Error, Result};

/// A folder that appears whole or not at all: it is written beside its place, under a hidden name, and moved there
/// at the end. Dropped before that, nothing is left of it.
pub(crate) struct Staging {
    hidden: TempDir,
    place: PathBuf,
}

impl Staging {
    /// An error if the place is taken, or cannot be written.
    pub(crate) fn new(place: &Path) -> Result<Self> {
        let failed = |source| Error::Write {
            path: place.into(),
            source,
        };
        match fs::read_dir(place).map(|mut entries| entries.next().is_some()) {
            Ok(false) => {}
            Ok(true) => return Err(Error::Taken(place.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        // `parent` of a bare name is the empty path.
        let parent = match place.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        fs::create_dir_all(parent).map_err(failed)?;
        let builder = tempfile::Builder::new()
            .prefix(".attend-")
            .suffix(".tmp")
            .tempdir_in(parent);
        Ok(Self {
            hidden: builder.map_err(failed)?,
            place: place.into(),
        })
    }

    /// Where its files are written.
    pub(crate) fn path(&self) -> &Path {
        self.hidden.path()
    }

    /// Writes files, whose names may have a folder: `target/tokenizer.json`.
    pub(crate) fn write(&self, files: &[(String, Vec<u8>)]) -> Result<()> {
        for (name, bytes) in files {
            let path = self.path().join(name);
            let write = || {
                if let Some(parent) = path.parent() {
                    fs::create_dir_all(parent)?;
                }
                fs::write(&path, bytes)?;
                File::open(&path)?.sync_all()
            };
            let written = write();
            written.map_err(|source| Error::Write {
                path: self.place.join(name),
                source,
            })?;
        }
        Ok(())
    }

    /// Moves the folder to its place.
    pub(crate) fn finish(self) -> Result<()> {
        let Self { hidden, place } = self;
        let moved = || {
            // Readable for others, as folders usually are: that of a temporary one is its owner's.
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                fs::set_permissions(hidden.path(), fs::Permissions::from_mode(0o755))?;
            }
            File::open(hidden.path())?.sync_all()?;
            fs::rename(hidden.path(), &place)
        };
        let moved = moved();
        moved.map_err(|source| Error::Write {
            path: place,
            source,
        })?;
        let _ = hidden.keep(); // it is no longer there
        Ok(())
    }
}
