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
//! `corpus`, `sentence`, `question`, `scene`, `copula`, `circumstance`, `place`, `phrase`, `choice`.
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
mod meaning;
mod phrase;
mod place;
mod question;
mod random;
mod scene;
mod sentence;

use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, fs};

use corpus::Corpus;

fn main() -> ExitCode {
    let mut folder = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../data/quickstart"
    ));
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
    let splits = [
        ("train", &corpus.train),
        ("valid", &corpus.valid),
        ("test", &corpus.test),
    ];
    let mut ok = true;
    for (name, split) in splits {
        for (language, lines) in [("en", &split.english), ("de", &split.german)] {
            let path = folder.join(format!("{name}.{language}"));
            let text = lines.join("\n") + "\n";
            let problem = match check {
                true => match fs::read_to_string(&path) {
                    Ok(found) if found == text => None,
                    Ok(_) => Some("differs from what the generator writes".to_owned()),
                    Err(error) => Some(error.to_string()),
                },
                false => fs::create_dir_all(&folder)
                    .and_then(|()| fs::write(&path, text))
                    .err()
                    .map(|error| error.to_string()),
            };
            if let Some(problem) = problem {
                eprintln!("error: {}: {problem}", path.display());
                ok = false;
            }
        }
        let (pairs, novel) = (split.english.len(), split.novel);
        eprintln!("{name}: {pairs} pairs, {novel} with words that training never sees together");
    }
    if ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
