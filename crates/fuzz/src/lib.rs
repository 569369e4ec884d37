//! Fuzz targets for everything that reads what a user or a network gives.
//!
//! A target is a function of bytes in `targets/`, with small real files in `seeds/<target>/`. It parses the
//! bytes with the code that the programs use. An error is a fine answer; a panic is not, nor is an answer that
//! breaks what the target asserts.
//!
//! `cargo test -p attend-fuzz` runs the seeds and some mutations of them, on any toolchain.
//! `scripts/fuzz.sh` runs libFuzzer, which looks for inputs that reach new code.

pub mod mutate;
mod outcome;
pub mod targets;

use std::path::{Path, PathBuf};
use std::{fs, io};

pub use outcome::{keep_panics_silent, outcome};
pub use targets::TARGETS;

/// Something that reads bytes from outside.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of its file, and of the folder of its seeds.
    pub name: &'static str,
    /// Panics if the bytes reveal a bug.
    pub run: fn(&[u8]),
}

impl Target {
    /// The target with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        TARGETS.iter().find(|target| target.name == name)
    }

    /// The folder of its seeds.
    pub fn seed_folder(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("seeds")
            .join(self.name)
    }

    /// Its seeds as (file name, bytes), sorted by name.
    pub fn seeds(&self) -> io::Result<Vec<(String, Vec<u8>)>> {
        let mut seeds = Vec::new();
        for entry in fs::read_dir(self.seed_folder())? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            seeds.push((name, fs::read(entry.path())?));
        }
        seeds.sort();
        Ok(seeds)
    }
}
