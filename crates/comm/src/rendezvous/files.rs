use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::{Error, Result};

/// The files of one rank in the folder, and those of the others.
pub(super) struct Files {
    folder: PathBuf,
    pub(super) rank: usize,
    pub(super) size: usize,
    /// The machine, and what no other process has.
    pub(super) name: String,
}

impl Files {
    pub(super) fn new(folder: &Path, rank: usize, size: usize) -> Result<Self> {
        let failed = |error: std::io::Error| Error::Rendezvous {
            folder: folder.into(),
            problem: error.to_string(),
        };
        fs::create_dir_all(folder).map_err(failed)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |now| now.as_nanos());
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = host.split_whitespace().next().unwrap_or("unknown");
        Ok(Self {
            folder: folder.into(),
            rank,
            size,
            name: format!("{host} {rank} {} {now}", process::id()),
        })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self, what: &str, rank: usize) -> PathBuf {
        self.folder.join(format!("{what}-{rank}"))
    }

    /// What a rank has written, once it is whole. The last byte says that.
    pub(super) fn read(&self, what: &str, rank: usize) -> Option<String> {
        let text = fs::read_to_string(self.path(what, rank)).ok()?;
        text.strip_suffix('\0').map(String::from)
    }

    /// In place: a network file system shows a file that was opened again as it is, but may show a folder as it was.
    pub(super) fn write(&self, what: &str, rank: usize, text: &str) -> Result<()> {
        let path = self.path(what, rank);
        let written = fs::write(&path, format!("{text}\0"));
        written.map_err(|error| Error::Rendezvous {
            folder: self.folder.clone(),
            problem: format!("cannot write {}: {error}", path.display()),
        })
    }
}
