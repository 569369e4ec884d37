use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::Duration;

use attend_infer::run::{LockState, RunFolder};

use super::disk;
use crate::{Error, Result};

/// An exclusive lock on a run's folder. The system releases it when the process ends, even by a kill.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Lock {
    /// Acquires the lock. The error names the process that holds it.
    pub(crate) fn acquire(run: &RunFolder) -> Result<Self> {
        let path = run.lock_path();
        let error = |source: io::Error| Error::Write {
            path: path.clone(),
            source,
        };
        // It would be written wherever the link leads.
        if path.is_symlink() {
            return Err(error(io::Error::other("it is a symbolic link")));
        }
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).truncate(false);
        let mut file = disk::open(&path, options).map_err(error)?;
        // A reader, such as `train doctor`, may hold it for a moment.
        let mut locked = file.try_lock();
        for _ in 0..10 {
            if !matches!(locked, Err(TryLockError::WouldBlock)) {
                break;
            }
            thread::sleep(Duration::from_millis(10));
            locked = file.try_lock();
        }
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let process = match run.lock() {
                    LockState::Held { pid } => pid,
                    LockState::Free => None,
                };
                return Err(Error::Locked {
                    folder: run.path().to_path_buf(),
                    process,
                });
            }
            Err(TryLockError::Error(source)) => return Err(error(source)),
        }
        // The process id is for error messages. It is not needed, so a full disk is no reason to stop.
        let pid = std::process::id().to_string();
        let _ = disk::truncate(&path, &file, 0)
            .and_then(|()| disk::append(&path, &mut file, pid.as_bytes()));
        Ok(Self(file))
    }

    /// An error if the folder is no longer the one that was locked: it was removed, moved or replaced.
    pub(crate) fn check(&self, run: &RunFolder) -> Result<()> {
        let identity = |data: fs::Metadata| (data.dev(), data.ino());
        let now = fs::metadata(run.lock_path()).map(identity);
        match self.0.metadata().map(identity) {
            Ok(locked) if now.is_ok_and(|now| now == locked) => Ok(()),
            _ => Err(Error::FolderGone(run.path().to_path_buf())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_writer_at_a_time_and_a_lock_left_behind_is_no_obstacle() -> Result<()> {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::new(folder.path());
        assert_eq!(run.lock(), LockState::Free);
        let first = Lock::acquire(&run)?;
        let refused = Lock::acquire(&run).unwrap_err().to_string();
        let process = std::process::id();
        assert!(refused.contains(&format!("pid {process}")), "{refused}");
        let held = LockState::Held { pid: Some(process) };
        assert_eq!(run.lock(), held);
        first.check(&run)?;
        fs::remove_file(run.lock_path()).unwrap();
        let second = Lock::acquire(&run)?; // as in a folder that was removed and made again
        assert!(matches!(first.check(&run), Err(Error::FolderGone(_))));
        second.check(&run)?;
        drop((first, second));
        assert_eq!(run.lock(), LockState::Free);
        Lock::acquire(&run).map(drop)
    }
}
