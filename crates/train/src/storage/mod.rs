//! Writes files and folders atomically: they appear complete or not at all. Everything that a run writes goes
//! through here.

mod disk;
mod journal;
mod lock;
#[cfg(test)]
mod torture;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use attend_infer::Manifest;
use attend_infer::run::{Checkpoint, EVENT_FILE};

pub(crate) use journal::Journal;
pub(crate) use lock::Lock;

use crate::{Error, Result};

/// An error if [`write_folder`] would replace something other than a bundle that it wrote itself.
pub(crate) fn check_replaceable(folder: &Path) -> Result<()> {
    let ours = folder.join(Manifest::NAME).exists() && !folder.join(Checkpoint::STATE).exists();
    if folder.exists() && !ours {
        return Err(Error::Taken(folder.to_path_buf()));
    }
    Ok(())
}

/// An error if a folder cannot be created there. Called before the work whose result it will hold.
pub(crate) fn check_writable(folder: &Path) -> Result<()> {
    let exists = folder.ancestors().find(|path| path.exists());
    let exists = exists.unwrap_or(Path::new("."));
    let probe = temporary(&exists.join("probe"));
    let written = disk::write_synced(&probe, &[]).and_then(|()| disk::remove(&probe));
    written.map_err(|source| error(folder, source))
}

/// Creates a folder and its missing parents.
pub(crate) fn make_folder(folder: &Path) -> Result<()> {
    let make = || {
        let missing: Vec<_> = folder.ancestors().take_while(|f| !f.is_dir()).collect();
        for folder in missing.into_iter().rev().filter(|f| *f != Path::new("")) {
            disk::make_folder(folder)?;
            disk::sync_folder(parent(folder))?;
        }
        Ok(())
    };
    make().map_err(|source| error(folder, source))
}

/// Writes a folder of files, and replaces one that exists. The files are written to a temporary folder and synced
/// to disk, then a manifest with their sizes and hashes; then the folder is renamed.
pub(crate) fn write_folder(folder: &Path, files: &[(String, Vec<u8>)]) -> Result<()> {
    assert!(
        folder.file_name().is_some(),
        "a folder with a name of its own"
    );
    let temporary = temporary(folder);
    let written = write_all(&temporary, files).and_then(|()| {
        let replaced = replaced(folder);
        if folder.exists() {
            disk::remove(&replaced)?;
            disk::rename(folder, &replaced)?;
        }
        disk::rename(&temporary, folder)?;
        disk::sync_folder(parent(folder))?;
        disk::remove(&replaced)
    });
    written.map_err(|source| {
        let _ = restore_replaced(folder);
        let _ = disk::remove(&temporary);
        error(folder, source)
    })
}

/// The name of a folder while it is being replaced.
fn replaced(folder: &Path) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!(".{name}{REPLACED}"))
}

/// Renames a folder back if its replacement was not completed.
fn restore_replaced(folder: &Path) -> io::Result<()> {
    let replaced = replaced(folder);
    if replaced.exists() && !folder.exists() {
        disk::rename(&replaced, folder)
    } else {
        disk::remove(&replaced)
    }
}

fn write_all(folder: &Path, files: &[(String, Vec<u8>)]) -> io::Result<()> {
    disk::remove(folder)?;
    disk::make_folder(folder)?;
    for (name, bytes) in files {
        disk::write_synced(&folder.join(name), bytes)?;
    }
    let manifest = Manifest::of(files).to_json();
    disk::write_synced(&folder.join(Manifest::NAME), &manifest)?;
    disk::sync_folder(folder)
}

/// Removes a folder. It is renamed first, so that readers see it complete or not at all.
pub(crate) fn remove_folder(folder: &Path) -> Result<()> {
    let temporary = temporary(folder);
    let removed = disk::remove(&temporary)
        .and_then(|()| disk::rename(folder, &temporary))
        .and_then(|()| disk::sync_folder(parent(folder)))
        .and_then(|()| disk::remove(&temporary));
    removed.map_err(|source| error(folder, source))
}

/// Removes a file, a link or a folder, if there is one.
pub(crate) fn remove(path: &Path) -> Result<()> {
    disk::remove(path).map_err(|source| error(path, source))
}

/// Replaces a file atomically.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let temporary = temporary(path);
    let written = disk::write_synced(&temporary, bytes)
        .and_then(|()| disk::rename(&temporary, path))
        .and_then(|()| disk::sync_folder(parent(path)));
    written.map_err(|source| {
        let _ = disk::remove(&temporary);
        error(path, source)
    })
}

/// Makes `link` point to `name` in the same folder, atomically.
pub(crate) fn update_link(link: &Path, name: &str) -> Result<()> {
    if fs::read_link(link).is_ok_and(|target| target == Path::new(name)) {
        return Ok(());
    }
    let temporary = temporary(link);
    let made = || {
        disk::remove(&temporary)?;
        // In a copy of a run, the link may have become a folder.
        if !link.is_symlink() && link.join(Manifest::NAME).exists() {
            disk::remove(link)?;
        }
        disk::link(name, &temporary)?;
        disk::rename(&temporary, link)?;
        disk::sync_folder(parent(link))
    };
    made().map_err(|source| {
        let _ = disk::remove(&temporary);
        error(link, source)
    })
}

/// The names of temporary files and folders that a killed process left in `folder`.
pub(crate) fn leftovers(folder: &Path) -> Result<Vec<String>> {
    let names = || -> io::Result<Vec<String>> {
        let names = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name()));
        let names = names.collect::<io::Result<Vec<_>>>()?.into_iter();
        let names = names.map(|name| name.to_string_lossy().into_owned());
        Ok(names.filter(|name| is_temporary(name)).collect())
    };
    names().map_err(|source| Error::Read {
        path: folder.to_path_buf(),
        source,
    })
}

/// Removes leftovers. A folder that was being replaced is renamed back.
pub(crate) fn clean_up(folder: &Path) -> Result<()> {
    for name in leftovers(folder)? {
        let path = folder.join(&name);
        match name
            .strip_prefix('.')
            .and_then(|name| name.strip_suffix(REPLACED))
        {
            Some(name) => {
                restore_replaced(&folder.join(name)).map_err(|source| error(&path, source))?
            }
            None => remove(&path)?,
        }
    }
    Ok(())
}

const TEMPORARY: &str = ".tmp";
const REPLACED: &str = ".old.tmp";

/// Whether a name is that of a temporary file or folder of a run.
fn is_temporary(name: &str) -> bool {
    let name = name
        .strip_prefix('.')
        .and_then(|name| name.strip_suffix(REPLACED).or(name.strip_suffix(TEMPORARY)));
    name.is_some_and(|name| {
        let names = [
            "last",
            "best",
            "averaged",
            "config.toml",
            "metrics.jsonl",
            "report.html",
            "probe",
        ];
        let prefixes = ["checkpoint-", EVENT_FILE];
        names.contains(&name) || prefixes.iter().any(|prefix| name.starts_with(prefix))
    })
}

fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}{TEMPORARY}"))
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn error(path: &Path, source: io::Error) -> Error {
    Error::Write {
        path: path.to_path_buf(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Vec<(String, Vec<u8>)> {
        vec![("a".into(), vec![1, 2, 3]), ("b".into(), vec![0; 1000])]
    }

    #[test]
    fn a_folder_reads_back_as_it_was_written_and_leaves_nothing_temporary() -> Result<()> {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("checkpoint-1");
        write_folder(&folder, &files())?;
        write_folder(&folder, &files())?; // over itself
        assert_eq!(
            Manifest::read_files(&folder)?,
            files().into_iter().collect()
        );
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
        Ok(())
    }

    #[test]
    fn a_flipped_bit_a_cut_file_and_a_missing_one_are_named() -> Result<()> {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("checkpoint-1");
        type Damage<'a> = (&'a str, &'a dyn Fn(&Path));
        let damages: [Damage; 4] = [
            ("b: not what was written", &|folder| {
                let mut bytes = fs::read(folder.join("b")).unwrap();
                bytes[500] ^= 1;
                fs::write(folder.join("b"), bytes).unwrap();
            }),
            ("a: 2 bytes where 3 were written", &|folder| {
                fs::write(folder.join("a"), [1, 2]).unwrap()
            }),
            ("no such file: ", &|folder| {
                fs::remove_file(folder.join("b")).unwrap()
            }),
            ("manifest.json: not a manifest", &|folder| {
                fs::write(folder.join(Manifest::NAME), "{").unwrap()
            }),
        ];
        for (message, damage) in damages {
            write_folder(&folder, &files())?;
            damage(&folder);
            let error = Manifest::read_files(&folder).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        Ok(())
    }

    #[test]
    fn leftovers_of_a_killed_process_are_removed() -> Result<()> {
        let root = tempfile::tempdir().unwrap();
        let half = temporary(&root.path().join("checkpoint-2"));
        fs::create_dir(&half).unwrap();
        fs::write(half.join("a"), [1]).unwrap();
        fs::write(root.path().join("notes.tmp"), "a user's own").unwrap();
        clean_up(root.path())?;
        let left: Vec<_> = fs::read_dir(root.path())
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        assert_eq!(left, ["notes.tmp"]);
        Ok(())
    }
}
