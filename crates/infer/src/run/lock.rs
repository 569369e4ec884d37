use std::fs::TryLockError;
use std::io::Read;
use std::path::Path;

use crate::file::open_regular;

/// Whether a process holds the lock of a run's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockState {
    Free,
    /// `pid` is `None` if the process could not write its number.
    Held {
        pid: Option<u32>,
    },
}

impl LockState {
    pub(super) fn of(path: &Path) -> Self {
        let Ok(mut file) = open_regular(path) else {
            return Self::Free;
        };
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let read = file.read_to_string(&mut text).ok();
                let pid = read.and_then(|_| text.trim().parse().ok());
                Self::Held { pid }
            }
            _ => Self::Free,
        }
    }
}
