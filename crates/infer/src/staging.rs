use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use tempfile::TempDir;

use crate::{Error, Result};

/// A folder that appears whole or not at all: it is written beside its place, under a hidden name, and moved there
/// at the end, also in the place of one that is there. Dropped before that, nothing is left of it.
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
        Self::beside(place)
    }

    /// For a folder that takes the place of this one. An error if that cannot be done.
    pub(crate) fn in_place_of(folder: &Path) -> Result<Self> {
        Self::beside(folder)
    }

    fn beside(place: &Path) -> Result<Self> {
        let failed = |source| Error::Write {
            path: place.into(),
            source,
        };
        let parent = parent(place);
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

    /// Makes the folder ready to be moved.
    fn complete(&self) -> io::Result<()> {
        // Readable for others, as folders usually are: that of a temporary one is its owner's.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(self.path(), fs::Permissions::from_mode(0o755))?;
        }
        File::open(self.path())?.sync_all()
    }

    /// Moves the folder to its place, from which the one that is there is removed. At any moment one of the two is there,
    /// where the file system can exchange folders (those of Linux and macOS can); elsewhere there is none for an instant.
    pub(crate) fn exchange(self) -> Result<()> {
        let exchanged = self.complete().and_then(|()| {
            let (new, place) = (self.path(), &self.place);
            fs::set_permissions(new, fs::metadata(place)?.permissions())?;
            if renameat_with(CWD, new, CWD, place, RenameFlags::EXCHANGE).is_err() {
                // Under this name, `train resume` finds it if this process ends before the next line.
                let name = place.file_name().unwrap_or_default().to_string_lossy();
                let old = place.with_file_name(format!(".{name}.old.tmp"));
                fs::rename(place, &old)?;
                fs::rename(new, place).inspect_err(|_| {
                    let _ = fs::rename(&old, place);
                })?;
                fs::rename(&old, new)?;
            }
            File::open(parent(place))?.sync_all()
        });
        exchanged.map_err(|source| Error::Write {
            path: self.place.clone(),
            source,
        })
    }

    /// Moves the folder to its place.
    pub(crate) fn finish(self) -> Result<()> {
        let completed = self.complete();
        let Self { hidden, place } = self;
        let moved = || {
            completed?;
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

/// The folder that a path is in. `parent` of a bare name is the empty path.
fn parent(place: &Path) -> &Path {
    match place.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}
