//! What attacks on the command line have found: overlong lines, oversized models, signals at bad times,
//! folders that are not a run's. Every test fails with the binary of commit cfc49ae; to see that, set
//! `ATTEND_TRAIN` to its path.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::errors::refuses;
use crate::tiny::{Tiny, signal, wait_for_step};

const RUN: [&str; 2] = ["run", "config.toml"];

/// Waits for a process that must end in time.
fn finish_within(seconds: u64, mut child: Child) -> Output {
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(seconds) {
            child.kill().unwrap();
            let talk = text(&child.wait_with_output().unwrap().stderr);
            panic!("still running after {seconds} seconds: {talk}");
        }
        sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a command that must end in time; returns what it said.
fn talk_of(tiny: &Tiny, seconds: u64, arguments: &[&str]) -> String {
    let child = tiny.command(arguments).spawn().unwrap();
    text(&finish_within(seconds, child).stderr)
}

/// Makes a line of `words` words the last of both sides of a corpus.
fn add_line(tiny: &Tiny, corpus: &str, words: usize) {
    for (side, word) in [("a", "one "), ("b", "eins ")] {
        let name = format!("{corpus}.{side}");
        let lines = text(&tiny.read(&name));
        tiny.write(&name, lines + &word.repeat(words) + "\n");
    }
}

#[test]
fn an_overlong_validation_line_is_left_out_and_counted() {
    let tiny = Tiny::new();
    tiny.edit("steps = 60", "steps = 25");
    add_line(&tiny, "valid", 200_000);
    let talk = talk_of(&tiny, 60, &RUN);
    let report = "kept 10 of 11 pairs, skipped 0 with an empty side and 1 that are too long";
    assert!(talk.contains(report), "{talk}");
    assert!(talk.contains("step 25 · valid loss"), "{talk}");
}

#[test]
fn a_signal_interrupts_a_validation_which_is_done_when_the_run_is_resumed() {
    let tiny = Tiny::new();
    let set = [
        "--set",
        "train.steps=25",
        "--set",
        "train.log_every=1",
        "--set",
        "decode.beam=20",
        "--set",
        "train.translate_sentences=20000",
        "--set",
        "train.metric=bleu",
    ];
    for side in ["a", "b"] {
        let lines = tiny.read(&format!("valid.{side}"));
        tiny.write(&format!("valid.{side}"), lines.repeat(400));
    }
    let mut unbroken = tiny.command(&[&RUN[..], &set, &["--set", "out=unbroken"]].concat());
    let unbroken = unbroken.spawn().unwrap();
    let mut child = tiny.command(&[&RUN[..], &set].concat()).spawn().unwrap();
    wait_for_step(&mut child, &tiny.path("run"), 25);
    sleep(Duration::from_millis(300)); // it is validating now, for many seconds
    signal(&child, "TERM");
    let start = Instant::now();
    let output = finish_within(3, child);
    let talk = text(&output.stderr);
    assert_eq!(output.status.code(), Some(143), "{talk}");
    assert!(start.elapsed() < Duration::from_secs(3));
    assert!(
        talk.contains("SIGTERM: stopping"),
        "it is acknowledged: {talk}"
    );
    assert!(!talk.contains("valid loss"), "{talk}");
    tiny.must(&["resume", "run"]);
    finish_within(120, unbroken);
    assert!(tiny.outcome("run") == tiny.outcome("unbroken"));
    assert_eq!(tiny.log("run"), tiny.log("unbroken"));
    let best = |run: &str| fs::read_link(tiny.path(&format!("{run}/best"))).unwrap();
    assert_eq!(best("run"), best("unbroken"));
    tiny.must(&["doctor", "run"]);
}

#[test]
fn a_signal_ends_a_process_that_waits_for_its_data() {
    for (name, status) in [("TERM", 143), ("INT", 130), ("HUP", 129)] {
        let tiny = Tiny::new();
        fs::remove_file(tiny.path("train.a")).unwrap();
        let fifo = Command::new("mkfifo").arg(tiny.path("train.a")).status();
        assert!(fifo.unwrap().success());
        let child = tiny.command(&RUN).spawn().unwrap();
        sleep(Duration::from_millis(500));
        signal(&child, name);
        let output = finish_within(2, child);
        assert_eq!(output.status.code(), Some(status));
        assert!(!tiny.path("run").exists());
    }
}

#[test]
fn one_unbroken_word_of_a_million_characters_does_not_stall_tokenizer_training() {
    let tiny = Tiny::new();
    tiny.edit("steps = 60", "steps = 3");
    for side in ["a", "b"] {
        let name = format!("train.{side}");
        let word = ["ab", "ba"].map(|pair| pair.repeat(250_000)).concat();
        let lines = text(&tiny.read(&name));
        tiny.write(&name, lines + &word + "\n");
    }
    let talk = talk_of(&tiny, 60, &RUN);
    assert!(talk.contains("kept 120 of 121 pairs"), "{talk}");
}

#[test]
fn each_phase_before_training_is_announced() {
    let tiny = Tiny::new();
    tiny.edit("steps = 60", "steps = 3");
    let talk = talk_of(&tiny, 60, &RUN);
    for phase in [
        "reading train.a and train.b",
        "training a tokenizer on 240 lines",
        "encoding 120 pairs",
    ] {
        assert!(talk.contains(phase), "{phase}: {talk}");
    }
}

#[test]
fn a_model_that_does_not_fit_into_memory_is_refused_with_both_figures() {
    let tiny = Tiny::new();
    for (size, needed) in [
        ("model.transformer.d_model=100000", "T of memory"),
        ("model.transformer.encoder_layers=100000", " of memory"),
    ] {
        let start = Instant::now();
        let arguments = [
            &RUN[..],
            &["--set", size, "--set", "model.transformer.d_ff=4096"],
        ]
        .concat();
        let error = "this training needs about ";
        refuses(&tiny, &arguments, error, "--ignore-memory");
        let talk = text(&tiny.train(&arguments).stderr);
        assert!(
            talk.contains(needed) && talk.contains("this machine has"),
            "{talk}"
        );
        let seconds = start.elapsed().as_secs_f64();
        assert!(seconds < 20.0, "{size} took {seconds} seconds");
    }
    tiny.must(&[
        "run",
        "config.toml",
        "--ignore-memory",
        "--set",
        "train.steps=3",
    ]);
}

#[test]
fn a_lost_connection_saves_as_a_termination_does_unless_it_is_to_be_ignored() {
    let tiny = Tiny::new();
    tiny.must(&["run", "config.toml", "--set", "out=unbroken"]);
    let mut child = tiny.command(&RUN).spawn().unwrap();
    wait_for_step(&mut child, &tiny.path("run"), 12);
    signal(&child, "HUP");
    let output = finish_within(10, child);
    assert_eq!(output.status.code(), Some(129), "{}", text(&output.stderr));
    tiny.must(&["resume", "run"]);
    assert!(tiny.outcome("run") == tiny.outcome("unbroken"));

    // As under nohup.
    let train = tiny.command(&[]).get_program().to_owned();
    let mut child = Command::new("sh")
        .args([
            "-c",
            "trap '' HUP; exec \"$0\" run config.toml --set out=nohup",
        ])
        .arg(train)
        .current_dir(tiny.folder.path())
        .spawn()
        .unwrap();
    wait_for_step(&mut child, &tiny.path("nohup"), 12);
    signal(&child, "HUP");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_folder_that_no_run_made_is_not_written_to() {
    let tiny = Tiny::new();
    fs::create_dir_all(tiny.path("other/checkpoint-7")).unwrap();
    tiny.write("other/checkpoint-7/weights", "precious");
    tiny.write("other/config.toml", "[package]\n");
    for overwrite in [&[][..], &["--overwrite"]] {
        let arguments = [&RUN[..], &["--set", "out=other"], overwrite].concat();
        let error = "other is not empty, and is not the folder of a run";
        refuses(&tiny, &arguments, error, "empty folder");
    }
    assert_eq!(tiny.read("other/checkpoint-7/weights"), b"precious");
    assert_eq!(fs::read_dir(tiny.path("other")).unwrap().count(), 2);
    fs::create_dir(tiny.path("empty")).unwrap();
    let short = ["--set", "train.steps=3"];
    tiny.must(&[&RUN[..], &["--set", "out=empty"], &short].concat());
    tiny.must(&[&RUN[..], &["--set", "out=empty", "--overwrite"], &short].concat());
}

#[test]
fn the_best_loss_is_shown_without_a_minus_sign_and_a_link_to_damage_is_not_sound() {
    let tiny = Tiny::new();
    tiny.edit("steps = 60", "steps = 25");
    for out in ["out=a", "out=b"] {
        tiny.must(&["run", "config.toml", "--set", out]);
    }
    tiny.must(&["resume", "b", "--set", "train.steps=50"]);
    let found = text(&tiny.train(&["diff", "a", "b"]).stdout);
    assert!(
        found.contains("best: valid loss ") && !found.contains("loss -"),
        "{found}"
    );
    let found = text(&tiny.must(&["doctor", "a"]).stdout);
    assert!(found.contains("best valid loss "), "{found}");
    tiny.write("a/checkpoint-25/model.safetensors", "damage");
    let output = tiny.train(&["doctor", "a"]);
    assert_eq!(output.status.code(), Some(1));
    let found = text(&output.stdout);
    let last = found.lines().find(|line| line.starts_with("last"));
    assert!(last.is_some_and(|line| line.contains("damaged")), "{found}");
}

#[test]
fn more_threads_than_make_sense_are_refused() {
    let tiny = Tiny::new();
    let arguments = ["run", "config.toml", "--threads", "2000"];
    refuses(
        &tiny,
        &arguments,
        "--threads 2000: this machine has",
        "give at most",
    );
}

#[test]
fn one_language_for_both_sides_is_refused_and_one_file_for_both_is_mentioned() {
    let tiny = Tiny::new();
    let same = [&RUN[..], &["--set", "data.target=a"]].concat();
    let error = "data.target: is \"a\", the same as data.source";
    refuses(&tiny, &same, error, "different tags");
    let files = "data.train={ source = \"train.a\", target = \"train.a\" }";
    let talk = talk_of(
        &tiny,
        60,
        &[&RUN[..], &["--set", files, "--set", "train.steps=3"]].concat(),
    );
    assert!(
        talk.contains("train.a is both the source and the target"),
        "{talk}"
    );
}

#[test]
fn an_override_of_several_lines_or_with_a_strange_key_is_refused() {
    let tiny = Tiny::new();
    for set in [
        "train.steps=5\nseed=2",
        "train.steps=5\n[decode]\nbeam=1",
        "\"a.b\"=1",
    ] {
        let arguments = [&RUN[..], &["--set", set]].concat();
        let output = tiny.train(&arguments);
        let talk = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{talk}");
        let refused = ["not one key and its value", "not a key and a value"];
        assert!(refused.iter().any(|words| talk.contains(words)), "{talk}");
    }
}

#[test]
fn errors_use_the_users_words() {
    let tiny = Tiny::new();
    let words = [&RUN[..], &["--set", "train.steps=many"]].concat();
    let talk = text(&tiny.train(&words).stderr);
    assert!(
        talk.contains("expected an integer") && !talk.contains("u64"),
        "{talk}"
    );
    let unknown = [&RUN[..], &["--set", "größe=5"]].concat();
    let talk = text(&tiny.train(&unknown).stderr);
    assert!(!talk.contains("did you mean"), "{talk}");
    fs::remove_file(tiny.path("train.a")).unwrap();
    symlink("train.a", tiny.path("train.a")).unwrap();
    let talk = text(&tiny.train(&RUN).stderr);
    assert!(
        talk.contains("train.a: Too many levels of symbolic links"),
        "{talk}"
    );
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
fn the_schema_has_the_bounds_of_numbers_as_they_are_written() {
    let tiny = Tiny::new();
    let schema = text(&tiny.must(&["config", "--schema"]).stdout);
    assert!(!schema.contains("0.60000002"), "{schema}");
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let transformer = &schema["$defs"]["TransformerConfig"]["properties"];
    assert_eq!(transformer["heads"]["minimum"], 1);
    assert_eq!(transformer["dropout"]["exclusiveMaximum"], 1);
}

#[test]
fn a_trainer_whose_folder_is_removed_stops_with_an_error() {
    let tiny = Tiny::new();
    tiny.edit("steps = 60", "steps = 1000000");
    for change in ["save_every = 10", "validate_every = 25"] {
        let (key, _) = change.split_once(' ').unwrap();
        tiny.edit(change, &format!("{key} = 0"));
    }
    let mut child = tiny.command(&RUN).spawn().unwrap();
    wait_for_step(&mut child, &tiny.path("run"), 12);
    fs::remove_dir_all(tiny.path("run")).unwrap();
    let output = finish_within(20, child);
    let talk = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{talk}");
    assert!(
        talk.contains("error: run was removed or replaced"),
        "{talk}"
    );
    assert!(!tiny.path("run").exists());

    let mut child = tiny.command(&RUN).spawn().unwrap();
    wait_for_step(&mut child, &tiny.path("run"), 12);
    fs::remove_file(tiny.path("run/metrics.jsonl")).unwrap();
    let output = finish_within(20, child);
    let talk = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{talk}");
    assert!(talk.contains("metrics.jsonl: it was removed"), "{talk}");
}

#[test]
fn ls_shows_state_step_best_size_and_age_of_every_run() {
    let tiny = Tiny::new();
    let out = |name: &str| format!("out=runs/{name}");
    tiny.must(&["run", "config.toml", "--set", &out("done")]);
    let long = ["--set", "train.steps=1000000"];
    let mut stopped = tiny
        .command(&[&RUN[..], &["--set", &out("stopped")], &long].concat())
        .spawn()
        .unwrap();
    wait_for_step(&mut stopped, &tiny.path("runs/stopped"), 12);
    stopped.kill().unwrap();
    stopped.wait().unwrap();
    let mut running = tiny
        .command(&[&RUN[..], &["--set", &out("running")], &long].concat())
        .spawn()
        .unwrap();
    wait_for_step(&mut running, &tiny.path("runs/running"), 12);
    fs::create_dir(tiny.path("runs/notes")).unwrap();
    let list = text(&tiny.must(&["ls"]).stdout);
    running.kill().unwrap();
    running.wait().unwrap();
    let row = |name: &str| {
        let name = format!("runs/{name} ");
        let line = list.lines().find(|line| line.starts_with(&name));
        line.unwrap_or_else(|| panic!("{name}: {list}")).to_string()
    };
    assert_eq!(list.lines().count(), 4, "{list}");
    for part in ["finished", " 60/60 ", "valid loss ", "K", " s"] {
        assert!(row("done").contains(part), "{part}: {list}");
    }
    assert!(row("stopped").contains(" stopped "), "{list}");
    assert!(row("running").contains(" running "), "{list}");
    let one = text(&tiny.must(&["ls", "runs/done"]).stdout);
    assert_eq!(one.lines().count(), 2, "{one}");
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

#[test]
fn a_training_whose_terminal_is_closed_saves_and_can_be_resumed() {
    let tiny = Tiny::new();
    tiny.edit("steps = 60", "steps = 4000");
    for change in ["save_every = 10", "validate_every = 25"] {
        let (key, _) = change.split_once(' ').unwrap();
        tiny.edit(change, &format!("{key} = 0"));
    }
    let train = tiny.command(&[]).get_program().to_owned();
    let command = format!("{} run config.toml", train.display());
    let terminal = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .current_dir(tiny.folder.path())
        .stdout(std::process::Stdio::null())
        .spawn();
    let Ok(mut terminal) = terminal else {
        return; // this system has no `script`
    };
    wait_for_step(&mut terminal, &tiny.path("run"), 30);
    terminal.kill().unwrap(); // the terminal is gone, and its processes get SIGHUP
    terminal.wait().unwrap();
    let start = Instant::now();
    let mut doctor = String::new();
    while start.elapsed() < Duration::from_secs(20) {
        doctor = text(&tiny.train(&["doctor", "run"]).stdout);
        if !doctor.contains("is training here now") {
            break;
        }
        sleep(Duration::from_millis(50));
    }
    let saved = doctor.rsplit("continues from step ").next().unwrap();
    let saved: u64 = saved.trim().parse().unwrap_or_else(|_| panic!("{doctor}"));
    assert!(saved >= 30, "{doctor}");
}

#[test]
fn a_signal_to_verify_resume_ends_its_trainings_and_removes_their_folder() {
    let tiny = Tiny::new();
    fs::create_dir(tiny.path("tmp")).unwrap();
    let mut child = tiny
        .command(&["verify-resume", "config.toml", "--steps", "100000"])
        .env("TMPDIR", tiny.path("tmp"))
        .spawn()
        .unwrap();
    let scratch = loop {
        let mut entries = fs::read_dir(tiny.path("tmp")).unwrap();
        if let Some(entry) = entries.next() {
            break entry.unwrap().path();
        }
        assert!(child.try_wait().unwrap().is_none());
        sleep(Duration::from_millis(5));
    };
    let start = Instant::now();
    while !scratch.join("unbroken/.lock").exists() && start.elapsed().as_secs() < 60 {
        sleep(Duration::from_millis(5));
    }
    let trainer = text(&fs::read(scratch.join("unbroken/.lock")).unwrap());
    signal(&child, "TERM");
    assert_eq!(finish_within(5, child).status.code(), Some(143));
    assert!(!scratch.exists());
    assert!(!trainer.is_empty() && !Path::new("/proc").join(trainer).exists());
}

#[test]
fn a_lock_that_no_run_wrote_protects_a_folder_and_is_never_followed() {
    let tiny = Tiny::new();
    fs::create_dir(tiny.path("other")).unwrap();
    tiny.write("other/.lock", "another program's");
    let into = [&RUN[..], &["--set", "out=other"]].concat();
    let error = "other is not empty, and is not the folder of a run";
    refuses(&tiny, &into, error, "empty folder");
    assert_eq!(tiny.read("other/.lock"), b"another program's");

    tiny.must(&[&RUN[..], &["--set", "train.steps=3"]].concat());
    tiny.write("victim", "precious");
    fs::remove_file(tiny.path("run/.lock")).unwrap();
    symlink("../victim", tiny.path("run/.lock")).unwrap();
    let talk = text(&tiny.train(&["resume", "run"]).stderr);
    assert!(talk.contains("it is a symbolic link"), "{talk}");
    assert_eq!(tiny.read("victim"), b"precious");
}

#[test]
fn the_doctor_says_if_a_changed_config_will_be_refused() {
    let tiny = Tiny::new();
    tiny.must(&[&RUN[..], &["--set", "train.steps=3"]].concat());
    let config = text(&tiny.read("run/config.toml"));
    tiny.write(
        "run/config.toml",
        config.replace("beta1 = 0.9", "beta1 = 0.8"),
    );
    let output = tiny.train(&["doctor", "run"]);
    let found = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{found}");
    assert!(
        found.contains("`train resume` refuses it") && found.contains("beta1"),
        "{found}"
    );
}

#[test]
fn a_pipe_or_an_endless_file_in_place_of_a_runs_file_is_an_error() {
    let tiny = Tiny::new();
    tiny.must(&[&RUN[..], &["--set", "train.steps=3"]].concat());
    for file in ["config.toml", "metrics.jsonl", ".lock"] {
        let path = tiny.path(&format!("run/{file}"));
        let content = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(
            Command::new("mkfifo")
                .arg(&path)
                .status()
                .unwrap()
                .success()
        );
        for command in ["doctor", "ls"] {
            let child = tiny.command(&[command, "run"]).spawn().unwrap();
            finish_within(10, child);
        }
        fs::remove_file(&path).unwrap();
        fs::write(&path, content).unwrap();
    }
    let talk = talk_of(&tiny, 10, &["run", "/dev/zero"]);
    assert!(talk.contains("too large to be a config"), "{talk}");
}
