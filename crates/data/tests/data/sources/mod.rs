//! Sources that are not text.

mod features; // npy and safetensors
#[cfg(feature = "pictures")]
mod hostile; // pictures that are broken, or ask for too much
#[cfg(feature = "pictures")]
mod pictures; // PNG, JPEG and SVG
#[cfg(feature = "pictures")]
mod prepared; // corpora of pictures, and the cache

use attend_batch::{PictureShape, Source, SourceShape};
use attend_data::{Error, Result, SourceReader};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub(crate) const SMALL: PictureShape = PictureShape {
    height: 8,
    width: 12,
    channels: 3,
};

/// Writes files, and gives their paths.
pub(crate) struct Files(pub(crate) TempDir);

impl Files {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

pub(crate) fn read(shape: SourceShape, paths: &[PathBuf]) -> Result<Source> {
    SourceReader::new(shape, 10).read(paths)
}

pub(crate) fn error_of(shape: SourceShape, path: &Path) -> Error {
    read(shape, &[path.to_path_buf()]).unwrap_err()
}

/// The problem of a file, without its path.
pub(crate) fn problem(shape: SourceShape, path: &Path) -> String {
    let error = error_of(shape, path);
    assert!(error.hint().is_some_and(|hint| !hint.is_empty()), "{error}");
    let text = error.to_string();
    let rest = text.strip_prefix(&format!("{}: ", path.display()));
    rest.expect(&text).into()
}
