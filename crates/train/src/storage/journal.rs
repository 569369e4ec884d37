use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::disk;
use crate::{Error, Result};

/// An append-only file of lines or records. One that could not be written is kept in memory and written before the
/// next one, so that none is lost or cut off if the disk is full for a while.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    /// The length of the file's complete lines or records, in bytes.
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

    /// Appends a line, after those that could not be written before.
    pub(crate) fn append(&mut self, line: &str) -> Result<()> {
        self.append_record(format!("{line}\n").as_bytes())
    }

    /// Appends these bytes, after those that could not be written before.
    pub(crate) fn append_record(&mut self, record: &[u8]) -> Result<()> {
        self.pending.extend_from_slice(record);
        self.flush().map_err(|source| error(&self.path, source))
    }

    /// Syncs the file to disk.
    pub(crate) fn sync(&mut self) -> Result<()> {
        let synced = self.flush();
        let synced = synced.and_then(|()| disk::sync(&self.path, &self.file));
        synced.map_err(|source| error(&self.path, source))
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let data = self.file.metadata()?;
        if data.nlink() == 0 {
            return Err(io::Error::other("it was removed during training"));
        }
        if data.len() != self.written {
            disk::truncate(&self.path, &self.file, self.written)?; // an incomplete line or record
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
