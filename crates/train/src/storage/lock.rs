use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::{Error, Result};

/// The right to write a run's folder. It ends with the process, however that ends.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "held, not used")] File);

const NAME: &str = ".lock";

impl Lock {
    /// Takes it, or says which process has it.
    pub(crate) fn take(folder: &Path) -> Result<Self> {
        let path = folder.join(NAME);
        let error = |source: io::Error| Error::Write {
            path: path.clone(),
            source,
        };
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).map_err(error)?;
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
                return Err(Error::Locked {
                    folder: folder.to_path_buf(),
                    process: holder(&mut file),
                });
            }
            Err(TryLockError::Error(source)) => return Err(error(source)),
        }
        // For people; a disk that is full has no room for it, and may have for nothing else.
        let _ = file
            .set_len(0)
            .and_then(|()| write!(file, "{}", std::process::id()));
        Ok(Self(file))
    }

    /// The process that writes this folder now, if one does; `None` inside if it does not say.
    pub(crate) fn held(folder: &Path) -> Option<Option<u32>> {
        let mut file = File::open(folder.join(NAME)).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Some(holder(&mut file)),
            _ => None,
        }
    }
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_writer_at_a_time_and_a_lock_left_behind_is_no_obstacle() -> Result<()> {
        let folder = tempfile::tempdir().unwrap();
        assert!(Lock::held(folder.path()).is_none());
        let first = Lock::take(folder.path())?;
        let refused = Lock::take(folder.path()).unwrap_err().to_string();
        let process = std::process::id();
        assert!(refused.contains(&format!("process {process}")), "{refused}");
        assert_eq!(Lock::held(folder.path()), Some(Some(process)));
        drop(first);
        assert!(Lock::held(folder.path()).is_none());
        Lock::take(folder.path()).map(drop)
    }
}
