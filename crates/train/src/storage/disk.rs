//! The file operations of a run. Each is announced before it is done, so that a test can make it fail, stop
//! there as a kill would, or record it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// An operation that is about to be done.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(test), expect(dead_code, reason = "only tests read it"))]
pub(super) enum Action<'a> {
    MakeFolder(&'a Path),
    /// Writes the whole content of a file, which may exist.
    Write(&'a Path, &'a [u8]),
    /// Opens a file for writing, and creates it if it does not exist.
    Open(&'a Path),
    /// Appends to a file.
    Append(&'a Path, &'a [u8]),
    /// Truncates a file.
    Truncate(&'a Path, u64),
    /// Syncs a file's content or a folder's entries to disk.
    Sync(&'a Path),
    Rename(&'a Path, &'a Path),
    Link(&'a str, &'a Path),
    RemoveFile(&'a Path),
    /// Removes an empty folder.
    RemoveFolder(&'a Path),
}

#[cfg(not(test))]
fn announce(_: Action) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
use super::torture::announce;

pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    announce(Action::MakeFolder(path))?;
    fs::create_dir(path)
}

/// Writes a file and syncs it to disk.
pub(super) fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    announce(Action::Write(path, bytes))?;
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    announce(Action::Sync(path))?;
    file.sync_all()
}

/// Opens a file with these options, and creates it if it does not exist.
pub(super) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    announce(Action::Open(path))?;
    options.create(true).open(path)
}

pub(super) fn append(path: &Path, file: &mut File, bytes: &[u8]) -> io::Result<()> {
    announce(Action::Append(path, bytes))?;
    file.write_all(bytes)
}

pub(super) fn truncate(path: &Path, file: &File, length: u64) -> io::Result<()> {
    announce(Action::Truncate(path, length))?;
    file.set_len(length)
}

pub(super) fn sync(path: &Path, file: &File) -> io::Result<()> {
    announce(Action::Sync(path))?;
    file.sync_all()
}

pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    sync(path, &File::open(path)?)
}

pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    announce(Action::Rename(from, to))?;
    fs::rename(from, to)
}

/// Makes a symbolic link to `name` in the same folder.
pub(super) fn link(name: &str, link: &Path) -> io::Result<()> {
    announce(Action::Link(name, link))?;
    std::os::unix::fs::symlink(name, link)
}

/// Removes a file, a link, or a folder with its contents, if there is one.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Err(error) => Err(error),
        Ok(data) if !data.is_dir() => {
            announce(Action::RemoveFile(path))?;
            fs::remove_file(path)
        }
        Ok(_) => {
            for entry in fs::read_dir(path)? {
                remove(&entry?.path())?;
            }
            announce(Action::RemoveFolder(path))?;
            fs::remove_dir(path)
        }
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
