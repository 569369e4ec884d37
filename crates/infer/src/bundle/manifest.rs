use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::file::{is_plain, read_regular};
use crate::{Error, Result};

/// `manifest.json`: what the other files of a folder are. It is written last, so a folder that has
/// one is whole, and a file that does not fit it is damaged.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub files: BTreeMap<String, Entry>,
}

/// One file.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub bytes: u64,
    pub sha256: String,
}

impl Manifest {
    pub const NAME: &str = "manifest.json";

    /// The manifest of (name, bytes).
    pub fn of(files: &[(String, Vec<u8>)]) -> Self {
        let entries = files.iter().map(|(name, bytes)| {
            let entry = Entry {
                bytes: bytes.len() as u64,
                sha256: sha256(bytes),
            };
            (name.clone(), entry)
        });
        let files = entries.collect();
        Self { files }
    }

    pub fn to_json(&self) -> Vec<u8> {
        super::config::json(self)
    }

    /// The manifest of a folder; `None` if it has none.
    pub(super) fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(Self::NAME);
        match read_regular(&path) {
            Ok(json) => Self::parse(&json, &path).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(damaged(&path, error.to_string())),
        }
    }

    /// Parses the bytes of the file. Every name in it is that of a file in the same folder. `path` is for
    /// errors.
    pub fn parse(json: &[u8], path: &Path) -> Result<Self> {
        let manifest = serde_json::from_slice(json);
        let manifest: Self =
            manifest.map_err(|error| damaged(path, format!("not a manifest: {error}")))?;
        match manifest.files.keys().find(|name| !is_plain(name)) {
            None => Ok(manifest),
            Some(name) => Err(damaged(
                path,
                format!("{name:?} is not the name of a file in this folder"),
            )),
        }
    }

    /// Reads every file of a folder that must have a manifest. The error names the file that is
    /// missing or damaged.
    pub fn read_files(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
        let manifest = Self::read(folder)?;
        let manifest = manifest.ok_or_else(|| Error::MissingFile(folder.join(Self::NAME)))?;
        let entries = manifest.files.into_iter();
        entries
            .map(|(name, entry)| {
                let bytes = entry.read(&folder.join(&name))?;
                Ok((name, bytes))
            })
            .collect()
    }
}

impl Entry {
    /// Reads a file that should be this one.
    pub(super) fn read(&self, path: &Path) -> Result<Vec<u8>> {
        self.check_length(path)?;
        let bytes = fs::read(path).map_err(|error| unreadable(path, &error))?;
        self.check(path, bytes.len() as u64, || sha256(&bytes))?;
        Ok(bytes)
    }

    /// Checks a file that should be this one, without holding it in memory.
    pub(super) fn verify(&self, path: &Path) -> Result<()> {
        self.check_length(path)?;
        let (bytes, sha256) = hash_file(path).map_err(|error| unreadable(path, &error))?;
        self.check(path, bytes, || sha256)
    }

    /// Before the file is opened, because a pipe blocks and a device need not end.
    fn check_length(&self, path: &Path) -> Result<()> {
        let metadata = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
        if !metadata.is_file() {
            return Err(damaged(path, "not a regular file".into()));
        }
        self.compare_length(path, metadata.len())
    }

    fn compare_length(&self, path: &Path, bytes: u64) -> Result<()> {
        if bytes == self.bytes {
            return Ok(());
        }
        let written = self.bytes;
        let message = format!("{bytes} bytes where {written} were written");
        Err(damaged(path, message))
    }

    fn check(&self, path: &Path, bytes: u64, sha256: impl FnOnce() -> String) -> Result<()> {
        self.compare_length(path, bytes)?;
        if sha256() != self.sha256 {
            let message = "not what was written (its SHA-256 differs)";
            return Err(damaged(path, message.into()));
        }
        Ok(())
    }
}

/// The error of a file that cannot be read.
fn unreadable(path: &Path, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => Error::MissingFile(path.into()),
        _ => damaged(path, error.to_string()),
    }
}

fn damaged(path: &Path, message: String) -> Error {
    Error::Damaged {
        path: path.into(),
        message,
    }
}

/// The length and the SHA-256 of a file, which is read in pieces.
fn hash_file(path: &Path) -> io::Result<(u64, String)> {
    let mut file = File::open(path)?;
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    let mut piece = vec![0; 1 << 16];
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Ok((bytes, hex(&hash.finalize())));
        }
        hash.update(&piece[..read]);
        bytes += read as u64;
    }
}

/// The SHA-256 of some bytes, in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
