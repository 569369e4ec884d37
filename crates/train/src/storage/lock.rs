use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::thread;
use std::time::Duration;

use attend_infer::run::{LockState, RunFolder};

use super::disk;
use crate::{Error, Result};

/// The right to write a run's folder. It ends with the process, however that ends.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "held, not used")] File);

impl Lock {
    /// Takes it, or says which process has it.
    pub(crate) fn acquire(run: &RunFolder) -> Result<Self> {
        let path = run.lock_path();
        let error = |source: io::Error| Error::Write {
            path: path.clone(),
            source,
        };
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).truncate(false);
        let mut file = disk::open(&path, options).map_err(error)?;
        // Someone may only be looking, for a moment.
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
        // For people; a disk that is full has no room for it, and may have for nothing else.
        let pid = std::process::id().to_string();
        let _ = disk::truncate(&path, &file, 0)
            .and_then(|()| disk::append(&path, &mut file, pid.as_bytes()));
        Ok(Self(file))
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
        drop(first);
        assert_eq!(run.lock(), LockState::Free);
        Lock::acquire(&run).map(drop)
    }
}
