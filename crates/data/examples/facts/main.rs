//! Generates the questions and facts in `data/facts`: a source asks a question and tells some facts, and its target is
//! the answer. The place of the fact that answers is written down.
//!
//! ```text
//! cargo run --release -p attend-data --example facts                    write data/facts
//! cargo run --release -p attend-data --example facts -- --check         compare with it
//! cargo run --release -p attend-data --example facts -- some/folder     write elsewhere
//! cargo test -p attend-data --example facts                             test the stories
//! ```
#![allow(clippy::print_stderr)]

#[path = "../quickstart/random.rs"]
#[allow(dead_code)] // the other corpus needs more of it
mod random;
mod story;

use std::collections::HashSet;
use std::io::{Read, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, io};

use lzma_rust2::{XzOptions, XzReader, XzWriter};
use random::Random;
use story::Story;

/// Where the files belong.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/facts");
/// The files, their numbers of questions, and how many facts their stories have. Training has shorter stories too,
/// which are learnt first; its file is compressed, to be small.
const FILES: [(&str, usize, RangeInclusive<usize>); 3] = [
    ("test.tsv", 1000, 4..=8),
    ("valid.tsv", 300, 4..=8),
    ("train.tsv.xz", 12_000, 2..=8),
];
const SEED: u64 = 2015;

fn main() -> ExitCode {
    let mut folder = PathBuf::from(FOLDER);
    let mut check = false;
    for argument in env::args().skip(1) {
        match argument.as_str() {
            "--check" => check = true,
            option if option.starts_with('-') => {
                eprintln!("error: unknown option {option}\n\nhint: facts [--check] [folder]");
                return ExitCode::from(2);
            }
            path => folder = PathBuf::from(path),
        }
    }
    let problems = problems(&folder, check);
    for problem in &problems {
        eprintln!("error: {problem}");
    }
    if problems.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The name and the text of every file. No two stories have the same facts and the same question, in any order.
fn files() -> Vec<(String, String)> {
    let mut random = Random::new(SEED);
    let mut told = HashSet::new();
    let files = FILES.map(|(name, count, facts)| {
        let mut lines = String::from("story\tanswer\tsupport\n");
        let mut left = count;
        while left > 0 {
            let facts = facts.start() + random.below(facts.end() - facts.start() + 1);
            let story = Story::new(facts, &mut random);
            let Story {
                text,
                answer,
                support,
                content,
            } = story;
            if told.insert(content) {
                lines += &format!("{text}\t{answer}\t{support}\n");
                left -= 1;
            }
        }
        (name.into(), lines)
    });
    files.into()
}

/// Writes the files, or compares them. What went wrong.
fn problems(folder: &Path, check: bool) -> Vec<String> {
    let problem = |(name, text): (String, String)| {
        let path = folder.join(name);
        let problem = if check {
            match read(&path) {
                Ok(found) if found == text => return None,
                Ok(_) => "differs from what the generator writes".to_owned(),
                Err(error) => error.to_string(),
            }
        } else {
            let written = fs::create_dir_all(folder).and_then(|()| write(&path, &text));
            written.err()?.to_string()
        };
        Some(format!("{}: {problem}", path.display()))
    };
    files().into_iter().filter_map(problem).collect()
}

fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "xz")
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if !is_compressed(path) {
        return fs::write(path, text);
    }
    let mut file = XzWriter::new(fs::File::create(path)?, XzOptions::with_preset(9))?;
    file.write_all(text.as_bytes())?;
    file.finish().map(drop)
}

fn read(path: &Path) -> io::Result<String> {
    if !is_compressed(path) {
        return fs::read_to_string(path);
    }
    let mut text = String::new();
    XzReader::new(fs::File::open(path)?, false).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_project_are_what_the_generator_writes() {
        let problems = problems(Path::new(FOLDER), true);
        assert!(problems.is_empty(), "{problems:?}");
    }
}
