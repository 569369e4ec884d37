//! The folder that keeps what was made from corpora: token ids and trained tokenizers.
//!
//! An entry is a folder that is named by a hash of everything that it was made from. It is written under another
//! name and moved to its place at the end, so that it is there whole or not at all.

mod bytes;
mod listing;
mod lock;
mod rows;
mod stamp;

pub use bytes::Bytes;
pub use listing::{CacheEntry, EntryKind};
pub(crate) use rows::{PARTS, Rows, RowsWriter, Shape};

use crate::{Error, Progress, Result};
use lock::Lock;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The file of an entry that says what it holds. It is written last.
pub(crate) const META: &str = "meta.json";
/// Changes whenever entries are written in another way, or text is encoded differently.
pub(crate) const VERSION: u32 = 2;

const PARTIAL: &str = "partial";
const LOCK: &str = "lock";

/// A cache folder. It is made when something is written to it.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// The cache in this folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        Self { folder }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self, key: &str, extension: &str) -> PathBuf {
        self.folder.join(format!("{key}.{extension}"))
    }

    /// Opens an entry. If it is missing or damaged, `make` writes its files into the folder that it is given.
    ///
    /// Of several processes, one makes the entry and the others wait for it.
    pub(crate) fn open_or_make<T>(
        &self,
        key: &str,
        progress: &dyn Progress,
        open: impl Fn(&Path) -> Result<T>,
        make: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<T> {
        let place = self.folder.join(key);
        if let Some(entry) = self.try_open(&place, &open) {
            return Ok(entry);
        }
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |source| Error::Write { path, source }
        };
        fs::create_dir_all(&self.folder).map_err(failed(&self.folder))?;
        let lock_path = self.path(key, LOCK);
        let _lock = Lock::wait(&lock_path, progress).map_err(failed(&lock_path))?;
        // Another process may have made it in the meantime.
        if let Some(entry) = self.try_open(&place, &open) {
            return Ok(entry);
        }
        let partial = self.path(key, PARTIAL);
        remove_folder(&partial).map_err(failed(&partial))?; // of a process that was killed
        fs::create_dir(&partial).map_err(failed(&partial))?;
        if let Err(error) = make(&partial) {
            let _ = remove_folder(&partial);
            return Err(error);
        }
        let publish = || {
            for file in fs::read_dir(&partial)? {
                File::open(file?.path())?.sync_all()?;
            }
            File::open(&partial)?.sync_all()?;
            remove_folder(&place)?; // damaged
            fs::rename(&partial, &place)?;
            File::open(&self.folder)?.sync_all()
        };
        publish().map_err(failed(&place))?;
        open(&place)
    }

    /// The entry, if it is there and not damaged.
    fn try_open<T>(&self, place: &Path, open: impl Fn(&Path) -> Result<T>) -> Option<T> {
        if !place.exists() {
            return None;
        }
        match open(place) {
            Ok(entry) => Some(entry),
            Err(error) => {
                tracing::warn!("{error}; it is made again");
                None
            }
        }
    }
}

/// Removes a folder and what it holds, if it is there.
fn remove_folder(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Writes a small file that is there whole or not at all while the system runs. It is not forced to disk, which would
/// take longer than all else if there are thousands of files: whoever reads it must notice if it is damaged.
fn write_note(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}
