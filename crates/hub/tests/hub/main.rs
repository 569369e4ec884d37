//! `attend-hub` against a hub on loopback that the tests start, faults included. Every test has its own cache.

mod download;
mod faults;
mod offline;
mod path;
mod settings;
mod token;
mod traversal;
mod upload;

use std::fs;
use std::path::{Path, PathBuf};

use attend_hub::testing::TestHub;
use attend_hub::{Hub, HubPath, Settings};
use tempfile::TempDir;

/// A hub with a model and a dataset, a cache, and a client of both.
struct World {
    server: TestHub,
    root: TempDir,
    /// The last commit of the model.
    commit: String,
}

const MODEL: &str = "hf://owner/model";
const CONFIG: &[u8] = b"{\"model_type\": \"marian\"}";

impl World {
    fn new() -> Self {
        let server = TestHub::start();
        server.put("owner/model", "main", "weights.bin", &weights());
        server.put("owner/model", "main", "deep/er/notes.txt", b"notes");
        let commit = server.put("owner/model", "main", "config.json", CONFIG);
        server.put("datasets/owner/data", "main", "train.en", b"a dog runs\n");
        Self {
            server,
            root: TempDir::new().unwrap(),
            commit,
        }
    }

    fn cache(&self) -> PathBuf {
        self.root.path().join("cache")
    }

    fn settings(&self) -> Settings {
        self.server.settings(&self.cache())
    }

    fn hub(&self) -> Hub {
        Hub::new(self.settings())
    }

    fn offline(&self) -> Hub {
        Hub::new(Settings {
            offline: true,
            ..self.settings()
        })
    }

    /// The contents of a file, through the cache.
    fn read(&self, path: &str) -> attend_hub::Result<Vec<u8>> {
        let file = self.hub().file(&at(path), &())?;
        Ok(fs::read(file).unwrap())
    }

    /// Every file outside of the cache. There should be none.
    fn outside(&self) -> Vec<PathBuf> {
        let (cache, mut files) = (self.cache(), files(self.root.path()));
        files.retain(|file| !file.starts_with(&cache));
        files
    }

    /// All contents in the cache, complete or not.
    fn blobs(&self) -> Vec<PathBuf> {
        let mut files = files(&self.cache());
        files.retain(|file| file.parent().unwrap().ends_with("blobs"));
        files
    }
}

/// More than one read of the network, and large enough to be an LFS file.
fn weights() -> Vec<u8> {
    (0..200_000_u32).map(|i| (i * i % 251) as u8).collect()
}

fn at(path: &str) -> HubPath {
    HubPath::parse(path).unwrap().expect("a path of the hub")
}

/// All files under a folder, links included.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}

/// Chooses every file.
fn all(files: &[String]) -> Result<Vec<String>, String> {
    Ok(files.to_vec())
}

/// An error is one line and has a hint.
fn message(error: &attend_hub::Error) -> String {
    let text = error.to_string();
    assert!(!text.contains('\n'), "{text}");
    assert!(
        error.hint().is_some_and(|hint| !hint.contains('\n')),
        "{text}"
    );
    text
}
