//! What a cache folder holds, and removing it.

use super::lock::Lock;
use super::{Cache, LOCK, META, PARTIAL, remove_folder};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What an entry of a cache is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A corpus as token ids.
    Corpus,
    /// Trained tokenizers.
    Tokenizer,
    /// What a process was making when it was killed, or is making now.
    Partial,
    /// It cannot be read.
    Damaged,
}

/// One entry of a cache.
#[derive(Clone, Debug, Serialize)]
pub struct CacheEntry {
    /// Its name, by which it is removed.
    pub key: String,
    /// What it is.
    pub kind: EntryKind,
    /// The bytes that it takes on disk.
    pub bytes: u64,
    /// The files that it was made from.
    pub files: Vec<PathBuf>,
    /// The pairs that it holds, if it is a corpus.
    pub pairs: Option<u64>,
    /// When it was made.
    #[serde(skip)]
    pub made: SystemTime,
}

/// The part of `meta.json` that is the same for all kinds.
#[derive(Deserialize)]
struct Summary {
    kind: EntryKind,
    files: Vec<PathBuf>,
    #[serde(default)]
    pairs: Option<u64>,
}

impl Cache {
    /// The entries, by name.
    pub fn entries(&self) -> Result<Vec<CacheEntry>> {
        let list = || {
            let mut entries = Vec::new();
            for file in fs::read_dir(self.folder())? {
                let path = file?.path();
                let Some(key) = key_of(&path).filter(|_| path.is_dir()) else {
                    continue;
                };
                match entry(key, &path) {
                    // It was removed or moved to its place meanwhile.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    entry => entries.extend(entry?),
                }
            }
            entries.sort_by(|a: &CacheEntry, b| a.key.cmp(&b.key));
            Ok(entries)
        };
        list().map_err(|source: io::Error| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Error::Unreadable {
                problem: format!("{}: no such folder", self.folder().display()),
                hint: "a cache is the folder attend-cache beside a run, or the one that data.cache names"
                    .into(),
            },
            _ => Error::Io {
                path: self.folder().into(),
                source,
            },
        })
    }

    /// Removes an entry. A training that uses it is not disturbed. One that another process is making stays.
    /// Returns whether it was removed.
    pub fn remove(&self, key: &str) -> Result<bool> {
        let name = key.strip_suffix(&format!(".{PARTIAL}")).unwrap_or(key);
        let path = self.folder().join(key);
        // A key with a folder in it would be an entry of another cache.
        let is_entry = || entry(key, &path).is_ok_and(|entry| entry.is_some());
        if key_of(Path::new(key)) != Some(key) || !is_entry() {
            return Err(Error::NoEntry {
                folder: self.folder().into(),
                key: key.into(),
            });
        }
        let remove = || {
            let Some(_lock) = Lock::try_now(&self.path(name, LOCK))? else {
                return Ok(false);
            };
            remove_folder(&path)?;
            Ok(true)
        };
        remove().map_err(|source: io::Error| Error::Write {
            path: path.clone(),
            source,
        })
    }
}

/// The name of an entry, if this is one.
fn key_of(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    let key = name.strip_suffix(&format!(".{PARTIAL}")).unwrap_or(name);
    let is_hash = key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then_some(name)
}

/// What the names of an entry's files begin with.
const FILES: [&str; 6] = [META, "fates", "source", "target", "tokenizer", "vocab"];

/// The entry in this folder. None if the folder was made by another program, although its name could be a key: it is
/// not to be removed.
fn entry(key: &str, path: &Path) -> io::Result<Option<CacheEntry>> {
    let summary = fs::read(path.join(META)).ok();
    let summary: Option<Summary> = summary.and_then(|text| serde_json::from_slice(&text).ok());
    let (kind, files, pairs) = match summary {
        _ if key.ends_with(PARTIAL) => (EntryKind::Partial, Vec::new(), None),
        Some(summary) => (summary.kind, summary.files, summary.pairs),
        None => (EntryKind::Damaged, Vec::new(), None),
    };
    let mut bytes = 0;
    for file in fs::read_dir(path)? {
        let file = file?;
        let name = file.file_name();
        let is_known = || {
            FILES
                .iter()
                .any(|known| name.as_encoded_bytes().starts_with(known.as_bytes()))
        };
        let is_damaged = kind == EntryKind::Damaged;
        if is_damaged && (file.file_type()?.is_dir() || !is_known()) {
            return Ok(None);
        }
        bytes += file.metadata()?.len();
    }
    Ok(Some(CacheEntry {
        key: key.into(),
        kind,
        bytes,
        files,
        pairs,
        made: fs::metadata(path)?.modified()?,
    }))
}
