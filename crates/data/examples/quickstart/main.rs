//! Generates the English to German corpus in `data/quickstart`.
//!
//! A hand-written grammar invents meanings and says each of them in both languages, so every
//! sentence is right by construction and every English sentence has one translation.
//!
//! ```text
//! cargo run --release -p attend-data --example quickstart                    write data/quickstart
//! cargo run --release -p attend-data --example quickstart -- --check         compare with it
//! cargo run --release -p attend-data --example quickstart -- some/folder     write elsewhere
//! cargo test -p attend-data --example quickstart                             test the grammar
//! ```
//!
//! Reading order: `meaning` (what can be said), `english` and `german` (how it is said; German
//! with `case`, `declension` and `conjugation`), then what is said, from the large to the small:
//! `corpus`, `long`, `sentence`, `question`, `scene`, `copula`, `circumstance`, `place`, `phrase`,
//! `choice`.
#![allow(clippy::print_stderr)]

mod case;
mod choice;
mod circumstance;
mod conjugation;
mod copula;
mod corpus;
mod declension;
mod english;
mod german;
mod lexicon;
mod long;
mod meaning;
mod phrase;
mod place;
mod question;
mod random;
mod scene;
mod sentence;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use corpus::Corpus;

/// Where the corpus belongs.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/quickstart");

fn main() -> ExitCode {
    let mut folder = PathBuf::from(FOLDER);
    let mut check = false;
    for argument in env::args().skip(1) {
        match argument.as_str() {
            "--check" => check = true,
            option if option.starts_with('-') => {
                eprintln!("error: unknown option {option}\n\nhint: quickstart [--check] [folder]");
                return ExitCode::from(2);
            }
            path => folder = PathBuf::from(path),
        }
    }
    let corpus = Corpus::generate();
    for (name, split) in corpus.splits() {
        let (pairs, novel) = (split.english.len(), split.novel);
        eprintln!("{name}: {pairs} pairs, {novel} with words that training never sees together");
    }
    let problems = if check {
        differences(&corpus, &folder)
    } else {
        write(&corpus, &folder)
    };
    for problem in &problems {
        eprintln!("error: {problem}");
    }
    if problems.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The path and content of every file.
fn files(corpus: &Corpus, folder: &Path) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for (name, split) in corpus.splits() {
        for (language, lines) in [("en", &split.english), ("de", &split.german)] {
            let path = folder.join(format!("{name}.{language}"));
            files.push((path, lines.join("\n") + "\n"));
        }
    }
    files
}

fn write(corpus: &Corpus, folder: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, text) in files(corpus, folder) {
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, text));
        problems.extend(
            written
                .err()
                .map(|error| format!("{}: {error}", path.display())),
        );
    }
    problems
}

fn differences(corpus: &Corpus, folder: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, text) in files(corpus, folder) {
        let problem = match fs::read_to_string(&path) {
            Ok(found) if found == text => continue,
            Ok(_) => "differs from what the generator writes".to_owned(),
            Err(error) => error.to_string(),
        };
        problems.push(format!("{}: {problem}", path.display()));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_project_are_what_the_grammar_writes() {
        let problems = differences(&Corpus::generate(), Path::new(FOLDER));
        assert!(problems.is_empty(), "{problems:?}");
    }
}
