use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;

use attend_infer::{Contents, Manifest};
use tempfile::TempDir;

use crate::command::infer;
use crate::fixture::Fixture;

/// A run whose best checkpoint is of step 5, with validation data.
fn with_run() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("valid.en", "a dog runs\nthe small cat sleeps\n");
    write("valid.de", "ein Hund rennt\ndie kleine Katze schläft\n");
    let checkpoint = folder.path().join("run/checkpoint-5");
    fs::create_dir_all(&checkpoint).unwrap();
    let fixture = Fixture::joint();
    let mut files = fixture.files(&fixture.tensors());
    let data = "source = \"en\"\ntarget = \"de\"\ntrain = \"none\"\nvalid = \"valid\"\n";
    let config = format!("seed = 1\nout = \"run\"\n[data]\n{data}");
    files.push(("config.toml".into(), config.into_bytes()));
    for (name, bytes) in &files {
        fs::write(checkpoint.join(name), bytes).unwrap();
    }
    fs::write(
        checkpoint.join(Manifest::NAME),
        Manifest::of(&files).to_json(),
    )
    .unwrap();
    symlink("checkpoint-5", folder.path().join("run/best")).unwrap();
    folder
}

/// The bytes of every file of a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let file = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        (name, fs::read(entry.path()).unwrap())
    };
    entries.map(file).collect()
}

#[test]
fn the_best_settings_for_the_validation_data_are_kept_with_the_model() {
    let folder = with_run();
    let folder = folder.path();
    let checkpoint = folder.join("run/checkpoint-5");
    let before = files(&checkpoint);
    let tune = ["tune", "run", "--beams", "1,3", "--metric", "chrf"];
    let tried = infer(folder, &[&tune[..], &["--dry-run"]].concat(), b"");
    assert_eq!((tried.code, &*tried.stderr), (0, ""));
    assert_eq!(files(&checkpoint), before, "a dry run changes nothing");

    let ran = infer(folder, &tune, b"");
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let (kept, trials) = lines.split_last().unwrap();
    assert_eq!(*kept, "kept in run/best");
    assert_eq!(trials, tried.stdout.lines().collect::<Vec<_>>());

    let rows = trials[1..trials.len() - 1].iter();
    let rows: Vec<Vec<&str>> = rows.map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(rows.iter().filter(|row| row[0] == "1").count(), 1);
    assert!(rows.iter().filter(|row| row[0] == "3").count() >= 7);
    let score = |row: &[&str]| row[2].parse::<f64>().unwrap();
    let highest = rows.iter().map(|row| score(row)).fold(0.0, f64::max);
    let best = rows.iter().find(|row| score(row) == highest).unwrap();
    let decode = Contents::open(&folder.join("run")).unwrap().decode;
    assert_eq!(decode.beam.to_string(), best[0]);
    if decode.beam > 1 {
        assert_eq!(format!("{:.2}", decode.length_penalty), best[1]);
    }

    // Only the settings are others, and the checkpoint is as sound as before.
    let after = files(&checkpoint);
    let changed = after
        .iter()
        .filter(|(name, bytes)| before[*name] != **bytes);
    let changed: Vec<&str> = changed.map(|(name, _)| &**name).collect();
    assert!(
        changed == ["generation_config.json", "manifest.json"] || changed.is_empty(),
        "{changed:?}"
    );
    assert_eq!(before.len(), after.len());
    assert_eq!(
        Manifest::read_files(&checkpoint).unwrap().len(),
        after.len() - 1
    );
    let left: Vec<_> = fs::read_dir(folder.join("run")).unwrap().collect();
    assert_eq!(left.len(), 2, "the checkpoint and the link");

    // Other commands take them.
    let evaluate = ["evaluate", "run", "--src", "valid.en", "--ref", "valid.de"];
    let evaluated = infer(
        folder,
        &[&evaluate[..], &["--metrics", "chrf"]].concat(),
        b"",
    );
    assert!(
        evaluated
            .stdout
            .trim_end()
            .ends_with(&format!("= {highest:.2}")),
        "{} is not {highest}",
        evaluated.stdout
    );
}

#[test]
fn a_run_that_is_being_trained_is_not_changed() {
    let folder = with_run();
    let folder = folder.path();
    let lock = File::create(folder.join("run/.lock")).unwrap();
    lock.lock().unwrap();
    let ran = infer(folder, &["tune", "run"], b"");
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.contains("run is being trained"),
        "{}",
        ran.stderr
    );
    let tried = infer(folder, &["tune", "run", "--dry-run", "--beams", "1"], b"");
    assert_eq!(tried.code, 0, "{}", tried.stderr);
}

#[test]
fn validation_data_that_cannot_be_found_can_be_given() {
    let folder = with_run();
    let folder = folder.path();
    fs::remove_file(folder.join("run/checkpoint-5/config.toml")).unwrap();
    fs::remove_file(folder.join("run/checkpoint-5/manifest.json")).unwrap();
    let tune = ["tune", "run", "--beams", "1,2"];
    let ran = infer(folder, &tune, b"");
    assert_eq!(ran.code, 1);
    for part in ["run/best has no config.toml", "--src FILE --ref FILE"] {
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
    let given = ["--src", "valid.en", "--ref", "valid.de"];
    let ran = infer(folder, &[&tune[..], &given].concat(), b"");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn a_model_that_samples_is_not_tuned() {
    let folder = with_run();
    let folder = folder.path();
    let path = folder.join("run/checkpoint-5/generation_config.json");
    fs::remove_file(folder.join("run/checkpoint-5/manifest.json")).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let samples = text.replace("\"do_sample\": false", "\"do_sample\": true");
    assert_ne!(samples, text);
    fs::write(&path, samples).unwrap();
    let ran = infer(folder, &["tune", "run"], b"");
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.contains("samples its translations"),
        "{}",
        ran.stderr
    );
}
