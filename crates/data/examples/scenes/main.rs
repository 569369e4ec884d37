//! Generates the pictures and captions in `data/scenes`.
//!
//! Each picture is a scene of two to four objects, drawn as SVG. Its caption in each language is a function of what
//! is seen, so every picture has one right caption.
//!
//! ```text
//! cargo run --release -p attend-data --example scenes                    write data/scenes
//! cargo run --release -p attend-data --example scenes -- --check         compare with it
//! cargo run --release -p attend-data --example scenes -- some/folder     write elsewhere
//! cargo test -p attend-data --example scenes                             test captions, places and splits
//! ```
//!
//! Reading order: `scene` (what can be seen), `kind` and `colour` (of what), `english` and `german` (how it is
//! said), `place` and `draw` (how it is drawn), `corpus` (which scenes are in which split), `files`.
#![allow(clippy::print_stderr)]

mod colour;
mod corpus;
mod draw;
mod english;
mod files;
mod german;
mod kind;
mod place;
#[path = "../quickstart/random.rs"]
mod random;
mod scene;
#[cfg(test)]
mod tests;

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

/// Where the pictures belong.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/scenes");

fn main() -> ExitCode {
    let mut folder = PathBuf::from(FOLDER);
    let mut check = false;
    for argument in env::args().skip(1) {
        match argument.as_str() {
            "--check" => check = true,
            option if option.starts_with('-') => {
                eprintln!("error: unknown option {option}\n\nhint: scenes [--check] [folder]");
                return ExitCode::from(2);
            }
            path => folder = PathBuf::from(path),
        }
    }
    let files = files::files();
    let differences = files::differences(&files, &folder);
    let shown = folder.display();
    if differences.is_empty() {
        eprintln!("{shown}: complete, {} files", files.len());
        return ExitCode::SUCCESS;
    }
    if check {
        for problem in differences.iter().take(10) {
            eprintln!("error: {problem}");
        }
        eprintln!(
            "\nhint: {} files differ; run scenes {shown}",
            differences.len()
        );
        return ExitCode::FAILURE;
    }
    match files::write(&files, &folder) {
        Ok(()) => {
            eprintln!("{shown}: wrote {} files", files.len());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {shown}: {error}");
            ExitCode::FAILURE
        }
    }
}
