//! The right to make or remove an entry, which one process has at a time.

use crate::Progress;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A lock that is held. Its file is removed before the lock is released, and the system releases the lock of a
/// process that is killed.
pub(super) struct Lock {
    _file: File,
    path: PathBuf,
}

impl Lock {
    /// Waits until nobody else has it.
    pub(super) fn wait(path: &Path, progress: &dyn Progress) -> io::Result<Self> {
        loop {
            let lock = Self::open(path)?;
            match lock.file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let what = "waiting for another process to prepare the data";
                    let _task = progress.start(what, None);
                    lock.file.lock()?;
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
            if let Some(lock) = lock.if_current()? {
                return Ok(lock);
            }
        }
    }

    /// None if somebody else has it.
    pub(super) fn try_now(path: &Path) -> io::Result<Option<Self>> {
        loop {
            let lock = Self::open(path)?;
            match lock.file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            if let Some(lock) = lock.if_current()? {
                return Ok(Some(lock));
            }
        }
    }

    fn open(path: &Path) -> io::Result<Opened<'_>> {
        let mut options = File::options();
        let file = options
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)?;
        Ok(Opened { file, path })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// A file that may be a lock.
struct Opened<'a> {
    file: File,
    path: &'a Path,
}

impl Opened<'_> {
    /// Whoever had the lock has removed the file that is open here. Its lock keeps out nobody who came later, so
    /// that it is the lock only if it is still in its place.
    fn if_current(self) -> io::Result<Option<Lock>> {
        let held = self.file.metadata()?;
        match fs::metadata(self.path) {
            Ok(there) if (there.dev(), there.ino()) == (held.dev(), held.ino()) => Ok(Some(Lock {
                _file: self.file,
                path: self.path.into(),
            })),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}
