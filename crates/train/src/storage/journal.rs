use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::disk;
use crate::{Error, Result};

/// A file that grows line by line. A line that could not be written is kept, and goes before the next
/// one: nothing is lost or cut because a disk was full for a while.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    /// Bytes of the file that are whole lines.
    written: u64,
    pending: Vec<u8>,
}

impl Journal {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let opened = || {
            let file = disk::open(path, OpenOptions::new().append(true))?;
            let written = file.metadata()?.len();
            Ok((file, written))
        };
        let (file, written) = opened().map_err(|source| error(path, source))?;
        Ok(Self {
            path: path.to_path_buf(),
            file,
            written,
            pending: Vec::new(),
        })
    }

    /// Adds a line, and all that could not be added before.
    pub(crate) fn append(&mut self, line: &str) -> Result<()> {
        self.pending.extend_from_slice(line.as_bytes());
        self.pending.push(b'\n');
        self.flush().map_err(|source| error(&self.path, source))
    }

    /// To the disk itself.
    pub(crate) fn sync(&mut self) -> Result<()> {
        let synced = self.flush();
        let synced = synced.and_then(|()| disk::sync(&self.path, &self.file));
        synced.map_err(|source| error(&self.path, source))
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if self.file.metadata()?.len() != self.written {
            disk::truncate(&self.path, &self.file, self.written)?; // part of a line
        }
        disk::append(&self.path, &mut self.file, &self.pending)?;
        self.written += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }
}

fn error(path: &Path, source: io::Error) -> Error {
    Error::Write {
        path: path.to_path_buf(),
        source,
    }
}
