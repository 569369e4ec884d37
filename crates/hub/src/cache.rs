//! The cache of one repository, in the layout that Python's `huggingface_hub` and `hf-hub` share:
//!
//! ```text
//! models--OWNER--NAME/blobs/DIGEST                 contents
//!                     snapshots/COMMIT/FILE        links to contents
//!                     refs/REVISION                the commit of a branch or tag
//! .locks/models--OWNER--NAME/DIGEST.lock           held while contents are written
//! ```
//!
//! Every name that becomes a part of a path here is checked before: digests and commits are hexadecimal
//! numbers, and files and revisions have passed `check_file_name`.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::digest::Digest;
use crate::path::{HubPath, Kind, check_file_name, is_commit};
use crate::{Error, Result};

/// How often a lock is tried that another process holds.
const LOCK_POLL: Duration = Duration::from_millis(200);

pub(crate) struct RepoCache {
    folder: PathBuf,
    locks: PathBuf,
}

impl RepoCache {
    pub(crate) fn new(cache: &Path, path: &HubPath) -> Self {
        let kind = match path.kind() {
            Kind::Model => "models",
            Kind::Dataset => "datasets",
        };
        let name = format!("{kind}--{}--{}", path.owner(), path.name());
        Self {
            folder: cache.join(&name),
            locks: cache.join(".locks").join(name),
        }
    }

    pub(crate) fn snapshot(&self, commit: &str) -> PathBuf {
        self.folder.join("snapshots").join(commit)
    }

    /// The file at this commit, if it is in the cache.
    pub(crate) fn file(&self, commit: &str, name: &str) -> Option<PathBuf> {
        let file = self.snapshot(commit).join(name);
        file.is_file().then_some(file)
    }

    /// The names of all cached files at this commit, sorted.
    pub(crate) fn files(&self, commit: &str) -> Vec<String> {
        let mut names = Vec::new();
        list(&self.snapshot(commit), "", &mut names);
        names.sort();
        names
    }

    /// The commit of a revision, as of the last time that the hub told it.
    pub(crate) fn commit(&self, revision: &str) -> Option<String> {
        if is_commit(revision) {
            return Some(revision.into());
        }
        let text = fs::read_to_string(self.folder.join("refs").join(revision)).ok()?;
        is_commit(text.trim()).then(|| text.trim().into())
    }

    /// Remembers the commit of a revision.
    pub(crate) fn set_commit(&self, revision: &str, commit: &str) -> Result<()> {
        if is_commit(revision) || self.commit(revision).as_deref() == Some(commit) {
            return Ok(());
        }
        let file = self.folder.join("refs").join(revision);
        create_parent(&file)?;
        // In two steps: a reader never sees half a commit. No two threads have the same temporary file.
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let (process, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let temporary = self.folder.join(format!("refs.{process}.{number}.tmp"));
        fs::write(&temporary, commit).map_err(Error::write(&temporary))?;
        fs::rename(&temporary, &file).map_err(Error::write(file))
    }

    /// Where contents are. They may not exist.
    pub(crate) fn blob(&self, digest: &Digest) -> PathBuf {
        self.folder.join("blobs").join(digest.as_str())
    }

    /// Whether contents of this size are in the cache. Contents of another size are damaged, and removed.
    pub(crate) fn has_blob(&self, digest: &Digest, size: u64) -> Result<bool> {
        let blob = self.blob(digest);
        match fs::metadata(&blob) {
            Ok(metadata) if metadata.len() == size => Ok(true),
            Ok(_) => {
                tracing::warn!(
                    "{} has a wrong size and is downloaded again",
                    blob.display()
                );
                fs::remove_file(&blob).map_err(Error::write(blob))?;
                Ok(false)
            }
            Err(_) => Ok(false),
        }
    }

    /// Waits until no other process writes these contents. Dropping the file ends the lock.
    pub(crate) fn lock(&self, digest: &Digest) -> Result<File> {
        let path = self.locks.join(format!("{}.lock", digest.as_str()));
        create_parent(&path)?;
        let file = File::create(&path).map_err(Error::write(&path))?;
        let mut told = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(source)) => return Err(Error::Write { path, source }),
            }
            if !told {
                tracing::warn!("waiting for another process that downloads the same file");
                told = true;
            }
            thread::sleep(LOCK_POLL);
        }
    }

    /// Makes contents appear as a file of a commit.
    pub(crate) fn link(&self, commit: &str, name: &str, digest: &Digest) -> Result<PathBuf> {
        let file = self.snapshot(commit).join(name);
        create_parent(&file)?;
        let up = "../".repeat(2 + name.matches('/').count());
        let target = PathBuf::from(format!("{up}blobs/{}", digest.as_str()));
        if fs::read_link(&file).is_ok_and(|found| found == target) {
            return Ok(file);
        }
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::write(file)(error));
            }
            _ => {}
        }
        match place(&target, &self.blob(digest), &file) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(Error::write(file)(error))
            }
            _ => Ok(file),
        }
    }
}

#[cfg(unix)]
fn place(target: &Path, _blob: &Path, file: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, file)
}

/// Where links need privileges, the file is a copy.
#[cfg(not(unix))]
fn place(_target: &Path, blob: &Path, file: &Path) -> io::Result<()> {
    fs::copy(blob, file).map(drop)
}

pub(crate) fn create_parent(file: &Path) -> Result<()> {
    match file.parent() {
        Some(parent) => fs::create_dir_all(parent).map_err(Error::write(parent)),
        None => Ok(()),
    }
}

/// Adds the names of all files in a folder, with `prefix` before them. A file that cannot be read is not there.
fn list(folder: &Path, prefix: &str, names: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let name = format!("{prefix}{name}");
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            list(&entry.path(), &format!("{name}/"), names);
        } else if entry.path().is_file() && check_file_name(&name).is_ok() {
            names.push(name);
        }
    }
}
