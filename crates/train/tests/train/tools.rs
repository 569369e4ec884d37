//! What people ask about runs: is one damaged, how do two differ, does one resume exactly.

use std::fs;
use std::path::Path;

use attend_infer::run::RunFolder;
use attend_ops::random::mix;
use attend_train::{Experiment, Stop};

use crate::tiny::Tiny;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn verify_resume_kills_and_compares_and_says_so() {
    let tiny = Tiny::new();
    let output = tiny.must(&[
        "verify-resume",
        "config.toml",
        "--steps",
        "200",
        "--stops",
        "2",
        "--set",
        "train.validate_every=70",
    ]);
    let found = text(&output.stdout);
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines.len(), 3, "{found}");
    assert!(
        lines[0].ends_with("  unbroken") && lines[1].contains("  killed at steps "),
        "{found}"
    );
    assert_eq!(lines[0][..64], lines[1][..64]);
    assert_eq!(lines[2], "the same bits: this training resumes exactly");
    assert!(!tiny.path("run").exists(), "nothing is left behind");
}

#[test]
fn verify_resume_shows_why_a_training_fails() {
    let tiny = Tiny::new();
    fs::remove_file(tiny.path("train.b")).unwrap();
    let output = tiny.train(&["verify-resume", "config.toml"]);
    let talk = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(talk.contains("no such file: train.b"), "{talk}");
}

#[test]
fn the_doctor_names_what_is_damaged_and_where_training_continues() {
    let tiny = Tiny::new();
    tiny.must(&["run", "config.toml"]);
    let healthy = tiny.must(&["doctor", "run"]);
    let found = text(&healthy.stdout);
    for part in [
        "config.toml",
        "checkpoint-60",
        "last",
        "best",
        "metrics.jsonl",
    ] {
        let line = found.lines().find(|line| line.starts_with(part));
        assert!(
            line.is_some_and(|line| line.contains("  ok  ")),
            "{part}: {found}"
        );
    }
    assert!(
        found.ends_with("`train resume` continues from step 60\n"),
        "{found}"
    );

    let mut bytes = tiny.read("run/checkpoint-60/model.safetensors");
    bytes.truncate(100);
    tiny.write("run/checkpoint-60/model.safetensors", bytes);
    tiny.write("run/.checkpoint-70.tmp", "half");
    let output = tiny.train(&["doctor", "run"]);
    let found = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        found.contains("checkpoint-60") && found.contains("DAMAGED"),
        "{found}"
    );
    assert!(found.contains("100 bytes where"), "{found}");
    assert!(found.contains(".checkpoint-70.tmp"), "{found}");
    assert!(
        found.ends_with("`train resume` continues from step 50\n"),
        "{found}"
    );
    assert!(
        tiny.path("run/.checkpoint-70.tmp").exists(),
        "it only looks"
    );
}

#[test]
fn a_diff_shows_nothing_for_equal_runs_and_all_that_differs_for_others() {
    let tiny = Tiny::new();
    tiny.edit("steps = 60", "steps = 20");
    for out in ["out=a", "out=b"] {
        tiny.must(&["run", "config.toml", "--set", out]);
    }
    assert_eq!(
        text(&tiny.must(&["diff", "a", "b"]).stdout),
        "no difference\n"
    );
    tiny.must(&["run", "config.toml", "--set", "out=c", "--set", "seed=8"]);
    let data = text(&tiny.read("train.b"));
    tiny.write("train.b", data.replacen("eins", "zwei", 1));
    tiny.must(&["run", "config.toml", "--set", "out=d"]);
    let seeds = tiny.train(&["diff", "a", "c"]);
    let found = text(&seeds.stdout);
    assert_eq!(seeds.status.code(), Some(1));
    for part in [
        "seed: 7 → 8",
        "first difference is at step 3",
        "parameters: up to ",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
    assert!(!found.contains("training data"), "{found}");
    let found = text(&tiny.train(&["diff", "a", "d"]).stdout);
    assert!(
        found.contains("training data: ") && !found.contains("seed"),
        "{found}"
    );
}

/// Every file of a checkpoint.
fn files(checkpoint: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(checkpoint).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn one_flipped_bit_anywhere_and_a_file_cut_anywhere_are_detected() {
    let tiny = Tiny::new();
    tiny.edit("steps = 60", "steps = 10");
    tiny.must(&["run", "config.toml"]);
    let run = RunFolder::new(tiny.path("run"));
    let files = files(&tiny.path("run/checkpoint-10"));
    assert_eq!(files.len(), 9, "{files:?}");
    for (number, file) in files.iter().enumerate() {
        let whole = fs::read(file).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        let place = |draw: u64| mix(draw ^ mix(number as u64)) as usize;
        let check = |damage: String| {
            let error = match run.checkpoint(10) {
                Ok(_) => panic!("{name}: {damage}, which is not detected"),
                Err(error) => error.to_string(),
            };
            // With a damaged manifest, another file may seem to be the damaged one.
            let named = error.contains(name) || name == "manifest.json";
            assert!(named, "{name}: {damage}, but the error is: {error}");
        };
        for draw in 0..112 {
            let mut bytes = whole.clone();
            let bit = place(draw) % (8 * bytes.len());
            bytes[bit / 8] ^= 1 << (bit % 8);
            fs::write(file, &bytes).unwrap();
            check(format!("bit {bit} is flipped"));
        }
        for draw in 0..13 {
            let length = place(1000 + draw) % whole.len();
            fs::write(file, &whole[..length]).unwrap();
            check(format!("cut at {length}"));
        }
        fs::write(file, &whole).unwrap();
        assert!(run.checkpoint(10).is_ok(), "{name} is whole again");
    }
}

#[test]
fn a_program_that_cannot_be_started_is_not_reported_as_unreadable() {
    let tiny = Tiny::new();
    let experiment = Experiment {
        config: tiny.path("config.toml"),
        overrides: Vec::new(),
        steps: 10,
        stops: 1,
        program: tiny.path("no-such-program"),
        compute: Vec::new(),
        scratch: tiny.folder.path().to_path_buf(),
        stop: Stop::default(),
    };
    let error = experiment.perform().unwrap_err().to_string();
    let program = tiny.path("no-such-program");
    let expected = format!("cannot start {}: No such file", program.display());
    assert!(error.starts_with(&expected), "{error}");
}
