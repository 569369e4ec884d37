//! What attacks on the command line have found. Every test fails with the binary of commit cfc49ae; to see that,
//! set `ATTEND_INFER` to its path (where a pipe is read, that binary does not end).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::Value;
use tempfile::TempDir;

use crate::command::infer;
use crate::fixture;

/// A temporary folder with a bundle. Another version of the program gets one that it can read.
fn with_bundle() -> (TempDir, PathBuf) {
    let (folder, bundle) = fixture::with_bundle();
    if std::env::var_os("ATTEND_INFER").is_some() {
        edit_config(&bundle, |config| config["max_length"] = Value::Null);
    }
    (folder, bundle)
}

/// Changes `config.json` of a bundle. A key that becomes null is removed.
fn edit_config(bundle: &Path, edit: impl FnOnce(&mut Value)) {
    let path = bundle.join("config.json");
    let mut config: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    edit(&mut config);
    config
        .as_object_mut()
        .unwrap()
        .retain(|_, value| !value.is_null());
    fs::write(path, config.to_string()).unwrap();
}

#[test]
fn a_long_line_is_warned_of_by_its_number_and_a_longer_one_is_cut() {
    let (folder, _) = with_bundle();
    let long = "a dog ".repeat(60);
    let longer = "a dog ".repeat(3_400); // 20,400 characters
    let input = format!("a dog\n{long}\n{longer}\n");
    let start = Instant::now();
    let whole = ["translate", "bundle", "--no-split"];
    let ran = infer(folder.path(), &whole, input.as_bytes());
    assert!(start.elapsed().as_secs() < 10, "the work is bounded");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stdout.lines().count(), 3);
    let warning = |line: &str| {
        let found = ran.stderr.lines().find(|text| text.contains(line));
        found.unwrap_or_else(|| panic!("{line}: {}", ran.stderr))
    };
    assert!(warning("line 2: ").contains("the model was trained on at most 64"));
    assert!(warning("line 3: ").contains("only the first 1024 of its "));
    assert_eq!(ran.stderr.lines().count(), 2, "{}", ran.stderr);

    // The cut line is translated as its beginning is.
    let cut = [&whole[..], &["--max-source-length", "20"]].concat();
    let cut = infer(folder.path(), &cut, longer.as_bytes());
    let beginning = infer(folder.path(), &whole, long.as_bytes());
    assert_ne!(cut.stdout, beginning.stdout);
    assert!(
        cut.stderr.contains("only the first 20 of its "),
        "{}",
        cut.stderr
    );
}

#[test]
fn many_long_lines_are_counted_after_the_first_ten() {
    let (folder, _) = with_bundle();
    let lines = ("a dog ".repeat(60) + "\n").repeat(12);
    fs::write(folder.path().join("lines"), &lines).unwrap();
    fs::write(folder.path().join("references"), "ein Hund\n".repeat(12)).unwrap();
    let evaluate = [
        "evaluate",
        "bundle",
        "--src",
        "lines",
        "--ref",
        "references",
    ];
    for args in [&["translate", "bundle", "lines"][..], &evaluate] {
        let ran = infer(folder.path(), args, b"");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stderr.contains("line 10: ") && !ran.stderr.contains("line 11: "));
        assert!(
            ran.stderr.contains("2 more lines are longer"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn a_bar_shows_how_far_translating_a_file_has_come_on_a_terminal_only() {
    let (folder, _) = with_bundle();
    fs::write(folder.path().join("lines"), "a dog\n".repeat(300)).unwrap();
    let program = crate::command::program();
    let program = program.display();
    for command in [
        format!("{program} translate bundle lines -o out"),
        format!("{program} evaluate bundle --src lines --ref out"),
    ] {
        let script = Command::new("script")
            .args([
                "-qec",
                &format!("stty rows 24 cols 60; {command}"),
                "/dev/null",
            ])
            .current_dir(folder.path())
            .output();
        let Ok(script) = script else {
            return; // this system has no `script`
        };
        let screen = String::from_utf8_lossy(&script.stdout);
        assert!(script.status.success(), "{screen}");
        assert!(
            screen.contains("/300 ") && screen.contains(" left"),
            "{screen}"
        );
    }
    let piped = infer(
        folder.path(),
        &["translate", "bundle", "lines", "-o", "out"],
        b"",
    );
    assert_eq!(piped.stderr, "");
}

#[test]
fn the_version_names_the_program_and_the_commit() {
    let (folder, _) = with_bundle();
    let version = infer(folder.path(), &["--version"], b"").stdout;
    let rest = version.strip_prefix("infer 0.1.0").unwrap();
    // Outside a git checkout there is no commit.
    if std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.git")).exists() {
        let commit = rest.trim().trim_start_matches('(').trim_end_matches(')');
        assert_eq!(commit.len(), 12, "{version}");
        assert!(commit.chars().all(|c| c.is_ascii_hexdigit()), "{version}");
    }
}

#[test]
fn more_threads_than_make_sense_are_refused() {
    let (folder, _) = with_bundle();
    let ran = infer(
        folder.path(),
        &["translate", "bundle", "--threads", "2000"],
        b"",
    );
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr
            .starts_with("error: --threads 2000: this machine has"),
        "{}",
        ran.stderr
    );
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    let (folder, _) = with_bundle();
    for shell in ["bash", "zsh", "fish"] {
        let script = infer(folder.path(), &["completions", shell], b"").stdout;
        assert!(script.contains("evaluate"), "{shell}: {script}");
    }
    let page = infer(folder.path(), &["man"], b"").stdout;
    assert!(
        page.contains(".TH infer 1") && page.contains("attend"),
        "{page}"
    );
}

#[test]
fn an_output_that_is_the_input_by_another_name_is_refused() {
    let (folder, _) = with_bundle();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("lines"), "a dog\n").unwrap();
    fs::hard_link(path("lines"), path("link")).unwrap();
    let ran = infer(
        folder.path(),
        &["translate", "bundle", "lines", "-o", "link"],
        b"",
    );
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.contains("is both input and output"),
        "{}",
        ran.stderr
    );
    let redirected = Command::new(crate::command::program())
        .args(["translate", "bundle", "-o", "lines"])
        .current_dir(folder.path())
        .stdin(fs::File::open(path("lines")).unwrap())
        .output()
        .unwrap();
    assert_eq!(redirected.status.code(), Some(1));
    assert_eq!(fs::read(path("lines")).unwrap(), b"a dog\n");
}

#[test]
fn attention_of_a_very_long_sentence_is_not_drawn() {
    let (folder, _) = with_bundle();
    let long = "a ".repeat(2000);
    let ran = infer(
        folder.path(),
        &["attend", "bundle", "--text", &long, "-o", "x.svg"],
        b"",
    );
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.contains("at most 512 can be drawn"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_bundle_without_a_key_of_its_model_or_with_a_pipe_in_it_is_refused() {
    let (folder, bundle) = with_bundle();
    let config = fs::read_to_string(bundle.join("config.json")).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&config).unwrap();
    value["model"]["transformer"]
        .as_object_mut()
        .unwrap()
        .remove("heads")
        .unwrap();
    fs::write(bundle.join("config.json"), value.to_string()).unwrap();
    let ran = infer(folder.path(), &["translate", "bundle"], b"a dog\n");
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.contains("no `model.transformer.heads`"),
        "{}",
        ran.stderr
    );
    fs::write(bundle.join("config.json"), config).unwrap();

    for file in [
        "manifest.json",
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        "model.safetensors",
    ] {
        let path = bundle.join(file);
        let content = fs::read(&path).ok();
        let _ = fs::remove_file(&path);
        assert!(
            Command::new("mkfifo")
                .arg(&path)
                .status()
                .unwrap()
                .success()
        );
        let ran = infer(folder.path(), &["translate", "bundle"], b"a dog\n");
        assert_eq!(ran.code, 1, "{file}");
        assert!(
            ran.stderr.contains("not a regular file"),
            "{file}: {}",
            ran.stderr
        );
        fs::remove_file(&path).unwrap();
        if let Some(content) = content {
            fs::write(&path, content).unwrap();
        }
    }
}

#[test]
fn a_config_with_a_hundred_thousand_layers_is_refused_within_two_gigabytes() {
    let (folder, bundle) = with_bundle();
    edit_config(&bundle, |config| {
        config["model"]["transformer"]["encoder_layers"] = 100_000.into();
    });
    let program = crate::command::program();
    let limited = Command::new("sh")
        .args([
            "-c",
            "ulimit -v 2000000; exec \"$0\" translate bundle --threads 1",
        ])
        .arg(program)
        .current_dir(folder.path())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let talk = String::from_utf8_lossy(&limited.stderr);
    assert_eq!(limited.status.code(), Some(1), "{talk}");
    assert!(
        talk.starts_with("error: bundle/model.safetensors: "),
        "{talk}"
    );
}

#[test]
fn a_manifest_that_names_a_file_outside_its_folder_is_refused() {
    let (folder, bundle) = with_bundle();
    fs::write(folder.path().join("secret"), "secret").unwrap();
    let entry = serde_json::json!({"bytes": 6, "sha256": attend_infer::sha256(b"secret")});
    let manifest = serde_json::json!({"files": {"../secret": entry}});
    fs::write(bundle.join("manifest.json"), manifest.to_string()).unwrap();
    let ran = infer(folder.path(), &["translate", "bundle"], b"a dog\n");
    assert_eq!(ran.code, 1);
    let error = "manifest.json: \"../secret\" is not the name of a file in this folder";
    assert!(ran.stderr.contains(error), "{}", ran.stderr);
}
