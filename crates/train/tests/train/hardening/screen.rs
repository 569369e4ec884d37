//! What people see: the terminal, the log, help.

use super::*;

#[test]
fn each_phase_before_training_is_announced() {
    let tiny = Tiny::new();
    tiny.edit("steps = 60", "steps = 3");
    let talk = talk_of(&tiny, 60, &RUN);
    for phase in [
        "reading train.a and train.b",
        "training a tokenizer on 240 lines",
        "encoding train.a and train.b",
    ] {
        assert!(talk.contains(phase), "{phase}: {talk}");
    }
}

#[test]
fn the_version_names_the_program_and_the_commit() {
    let tiny = Tiny::new();
    let version = text(&tiny.must(&["--version"]).stdout);
    let rest = version
        .strip_prefix("train 0.1.0")
        .unwrap_or_else(|| panic!("{version}"));
    // Outside a git checkout there is no commit.
    if Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.git")).exists() {
        let commit = rest.trim().trim_start_matches('(').trim_end_matches(')');
        assert_eq!(commit.len(), 12, "{version}");
        assert!(commit.chars().all(|c| c.is_ascii_hexdigit()), "{version}");
    }
}

#[test]
fn the_log_has_times_and_counts_epochs_as_the_screen_does() {
    let tiny = Tiny::new();
    tiny.edit("steps = 60", "steps = 3");
    let talk = text(&tiny.must(&RUN).stderr);
    assert!(talk.contains("step 3 · epoch 1 · train loss "), "{talk}");
    assert!(talk.contains(" (smoothed) · lr"), "{talk}");
    let log = text(&tiny.read("run/metrics.jsonl"));
    let line: serde_json::Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    assert_eq!(line["epoch"], 1);
    assert!(line["time"].as_f64().unwrap() > 1.7e9, "{line}");
}

#[test]
fn on_a_narrow_terminal_no_line_wraps_and_every_step_stays_on_the_screen() {
    let tiny = Tiny::new();
    let train = tiny.command(&[]).get_program().to_owned();
    let command = format!("stty rows 24 cols 50; {} run config.toml", train.display());
    let output = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .current_dir(tiny.folder.path())
        .output();
    let Ok(output) = output else {
        return; // this system has no `script`
    };
    let screen = text(&output.stdout);
    let lines = screen.split(['\r', '\n']).map(without_escapes);
    let lines: Vec<String> = lines.collect();
    for step in (3..=60).step_by(3) {
        let start = format!("step {step} · epoch ");
        assert!(
            lines.iter().any(|line| line.starts_with(&start)),
            "{step}: {screen}"
        );
    }
    let bars: Vec<&String> = lines.iter().filter(|line| line.contains("/60 ")).collect();
    assert!(!bars.is_empty(), "{screen}");
    for bar in bars {
        assert!(bar.chars().count() <= 50, "{bar}");
    }
}

/// A line without the sequences that control a terminal.
fn without_escapes(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |line, part| {
        let end = part.find(|c: char| c.is_ascii_alphabetic());
        line + end.map_or("", |end| &part[end + 1..])
    })
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    let tiny = Tiny::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = text(&tiny.must(&["completions", shell]).stdout);
        assert!(script.contains("verify-resume"), "{shell}: {script}");
    }
    let page = text(&tiny.must(&["man"]).stdout);
    assert!(
        page.contains(".TH train 1") && page.contains("doctor"),
        "{page}"
    );
    tiny.must(&["man", "-o", "man"]);
    assert!(text(&tiny.read("man/train-resume.1")).contains("\\-\\-allow"));
}
