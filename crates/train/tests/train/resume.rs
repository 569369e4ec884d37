//! Runs that are stopped and resumed end with the same bits as runs that are not: real processes,
//! really killed, with dropout, accumulation, clipping and a moving average on.

use std::fs;

use crate::tiny::{LogLine, Tiny, signal, wait_for_step};

/// The two ways that every operation can go.
const PATHS: [&[&str]; 2] = [&[], &["--composed"]];

fn with<'a>(arguments: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [arguments, more].concat()
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let tiny = Tiny::new();
    for path in PATHS {
        for threads in ["1", "2", "3"] {
            let out = format!("out=run{threads}");
            let run = [
                "run",
                "config.toml",
                "--overwrite",
                "--threads",
                threads,
                "--set",
                &out,
            ];
            tiny.must(&with(&run, path));
        }
        assert!(tiny.outcome("run1") == tiny.outcome("run2"), "{path:?}");
        assert!(tiny.outcome("run1") == tiny.outcome("run3"), "{path:?}");
        assert_eq!(tiny.log("run1"), tiny.log("run2"));
    }
}

#[test]
fn a_killed_run_resumes_to_the_same_bits_and_the_same_log() {
    let tiny = Tiny::new();
    for path in PATHS {
        tiny.must(&with(
            &["run", "config.toml", "--overwrite", "--threads", "1"],
            path,
        ));
        // Before the first save at an interval, between saves, after the last validation.
        for (number, stops) in [vec![3], vec![18, 33], vec![27, 51, 57]]
            .into_iter()
            .enumerate()
        {
            let (run, threads) = (
                format!("killed{}{number}", path.len()),
                if number == 1 { "2" } else { "1" },
            );
            let out = format!("out={run}");
            let start = [
                "run",
                "config.toml",
                "--overwrite",
                "--set",
                &out,
                "--threads",
                threads,
            ];
            let resume = ["resume", &run, "--threads", threads];
            let mut child = tiny.command(&with(&start, path)).spawn().unwrap();
            for step in stops {
                wait_for_step(&mut child, &tiny.path(&run), step);
                child.kill().unwrap(); // SIGKILL
                child.wait().unwrap();
                child = tiny.command(&with(&resume, path)).spawn().unwrap();
            }
            assert!(child.wait_with_output().unwrap().status.success());
            assert!(tiny.outcome("run") == tiny.outcome(&run), "{path:?} {run}");
            assert_eq!(tiny.log("run"), tiny.log(&run), "{path:?} {run}");
        }
    }
}

#[test]
fn signals_save_and_exit_with_their_status_and_resume_to_the_same_bits() {
    let tiny = Tiny::new();
    tiny.must(&["run", "config.toml"]);
    for (name, status) in [("TERM", 143), ("INT", 130)] {
        let out = format!("out={name}");
        let mut child = tiny
            .command(&["run", "config.toml", "--set", &out])
            .spawn()
            .unwrap();
        wait_for_step(&mut child, &tiny.path(name), 12);
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(status));
        let talk = String::from_utf8_lossy(&output.stderr);
        assert!(talk.contains(&format!("train resume {name}")), "{talk}");
        let saved = tiny.read(&format!("{name}/last/trainer_state.json"));
        let saved: serde_json::Value = serde_json::from_slice(&saved).unwrap();
        let logged = tiny.log(name).last().unwrap().step;
        let step = saved["step"].as_u64().unwrap();
        assert!(
            (logged..logged + 3).contains(&step),
            "the step was finished and saved"
        );
        tiny.must(&["resume", name]);
        assert!(tiny.outcome("run") == tiny.outcome(name), "{name}");
        assert_eq!(tiny.log("run"), tiny.log(name), "{name}");
    }
}

#[test]
fn resuming_a_finished_run_changes_nothing() {
    let tiny = Tiny::new();
    let first = tiny.must(&["run", "config.toml"]);
    let (outcome, log) = (tiny.outcome("run"), tiny.log("run"));
    let second = tiny.must(&["resume", "run"]);
    assert!(outcome == tiny.outcome("run"));
    assert_eq!(log, tiny.log("run"));
    assert_eq!(first.stdout, second.stdout, "the test set is shown again");
}

#[test]
fn a_damaged_checkpoint_is_named_and_the_one_before_it_used() {
    let tiny = Tiny::new();
    tiny.must(&["run", "config.toml"]);
    let whole = tiny.outcome("run");
    let name = "run/last/optimizer.safetensors";
    let mut bytes = tiny.read(name);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    tiny.write(name, bytes);
    let output = tiny.must(&["resume", "run"]);
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(
        talk.contains("optimizer.safetensors: not what was written"),
        "{talk}"
    );
    assert!(
        whole == tiny.outcome("run"),
        "the steps after it were done again"
    );
}

#[test]
fn a_run_is_not_resumed_on_other_data() {
    let tiny = Tiny::new();
    tiny.must(&["run", "config.toml"]);
    let data = String::from_utf8(tiny.read("train.b")).unwrap();
    tiny.write("train.b", data.replacen("eins", "zwei", 1));
    let output = tiny.train(&["resume", "run"]);
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        talk.contains("the training data is not what run was trained with"),
        "{talk}"
    );
}

#[test]
fn links_that_a_kill_left_behind_are_set_right_and_the_best_is_never_removed() {
    let tiny = Tiny::new();
    // Nothing is learnt, so the first validation, at step 25, stays the best.
    let still = [
        "--set",
        "train.schedule.learning_rate=1e-9",
        "--set",
        "train.metric=\"bleu\"",
    ];
    tiny.must(&with(
        &["run", "config.toml", "--set", "train.keep=1"],
        &still,
    ));
    let best = std::fs::read_link(tiny.path("run/best")).unwrap();
    assert_eq!(best.to_str(), Some("checkpoint-25"));
    assert!(tiny.path("run/best/manifest.json").exists());
    for link in ["last", "best"] {
        std::fs::remove_file(tiny.path(&format!("run/{link}"))).unwrap();
        std::os::unix::fs::symlink("checkpoint-10", tiny.path(&format!("run/{link}"))).unwrap();
    }
    tiny.must(&["resume", "run"]);
    assert_eq!(std::fs::read_link(tiny.path("run/best")).unwrap(), best);
    let last = std::fs::read_link(tiny.path("run/last")).unwrap();
    assert_eq!(last.to_str(), Some("checkpoint-60"));
}

#[test]
fn a_strange_newer_checkpoint_does_not_push_out_the_good_ones() {
    let tiny = Tiny::new();
    tiny.edit("steps = 60", "steps = 30");
    tiny.must(&["run", "config.toml", "--set", "train.keep=1"]);
    std::fs::create_dir(tiny.path("run/checkpoint-900000")).unwrap();
    tiny.write("run/checkpoint-007", "a file");
    let config = String::from_utf8(tiny.read("run/config.toml")).unwrap();
    tiny.write(
        "run/config.toml",
        config.replace("steps = 30", "steps = 45"),
    );
    tiny.must(&["resume", "run"]);
    let output = tiny.must(&["resume", "run"]);
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(
        talk.contains("checkpoint-900000") && talk.contains("from step 45"),
        "{talk}"
    );
}

#[test]
fn a_run_stopped_at_any_of_forty_steps_resumes_to_the_same_bits() {
    let tiny = Tiny::new();
    tiny.edit("accumulate = 2", "accumulate = 4");
    tiny.edit("steps = 60", "steps = 44");
    tiny.edit("keep = 2", "keep = 100");
    tiny.edit("save_every = 10", "save_every = 1");
    tiny.must(&["run", "config.toml"]);
    let state = |step: u64| -> serde_json::Value {
        let file = format!("run/checkpoint-{step}/trainer_state.json");
        serde_json::from_slice(&tiny.read(&file)).unwrap()
    };
    let place = |step: u64| {
        let position = &state(step)["position"];
        (
            position["epoch"].as_u64().unwrap(),
            position["index"].as_u64().unwrap(),
        )
    };
    let (first, last) = (place(1), place(40));
    assert!(
        last.0 > first.0 + 1,
        "from {first:?} to {last:?} there is an epoch's edge"
    );
    assert!(
        (1..=40).any(|step| place(step).1 > 0),
        "some steps end within an epoch"
    );
    for step in 1..=40 {
        let stopped = format!("stopped{step}");
        let best = state(step)["best"]["step"].as_u64();
        for step in [Some(step), best].into_iter().flatten() {
            let checkpoint = tiny.path(&format!("{stopped}/checkpoint-{step}"));
            fs::create_dir_all(&checkpoint).unwrap();
            for file in fs::read_dir(tiny.path(&format!("run/checkpoint-{step}"))).unwrap() {
                let file = file.unwrap();
                fs::copy(file.path(), checkpoint.join(file.file_name())).unwrap();
            }
        }
        for file in ["config.toml", "metrics.jsonl"] {
            tiny.write(
                &format!("{stopped}/{file}"),
                tiny.read(&format!("run/{file}")),
            );
        }
        let threads = if step % 2 == 0 { "2" } else { "1" };
        tiny.must(&["resume", &stopped, "--threads", threads]);
        assert!(tiny.outcome("run") == tiny.outcome(&stopped), "step {step}");
        assert_eq!(tiny.log("run"), tiny.log(&stopped), "step {step}");
    }
}

#[test]
fn a_run_without_a_sound_checkpoint_is_an_error_and_not_a_new_beginning() {
    let tiny = Tiny::new();
    tiny.edit("steps = 60", "steps = 20");
    tiny.must(&["run", "config.toml"]);
    for entry in fs::read_dir(tiny.path("run")).unwrap() {
        let state = entry.unwrap().path().join("trainer_state.json");
        if state.exists() {
            fs::write(state, "{}").unwrap();
        }
    }
    let log = tiny.read("run/metrics.jsonl");
    let output = tiny.train(&["resume", "run"]);
    let talk = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        talk.contains("error: run/checkpoint-20/trainer_state.json: 2 bytes where"),
        "{talk}"
    );
    assert!(log == tiny.read("run/metrics.jsonl"));
}

#[test]
fn a_lost_config_is_taken_from_the_checkpoint() {
    let tiny = Tiny::new();
    tiny.must(&["run", "config.toml"]);
    let whole = tiny.outcome("run");
    fs::remove_file(tiny.path("run/config.toml")).unwrap();
    fs::remove_dir_all(tiny.path("run/checkpoint-60")).unwrap();
    let output = tiny.must(&["resume", "run"]);
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(talk.contains("run has lost its config.toml"), "{talk}");
    assert!(whole == tiny.outcome("run") && tiny.path("run/config.toml").exists());
}

#[test]
fn if_the_best_checkpoint_is_lost_the_last_is_tested() {
    let tiny = Tiny::new();
    // Nothing is learnt, so the first validation, at step 25, stays the best.
    tiny.edit("learning_rate = 0.01", "learning_rate = 1e-9");
    tiny.must(&["run", "config.toml", "--set", "train.metric=bleu"]);
    fs::remove_dir_all(tiny.path("run/checkpoint-25")).unwrap();
    let output = tiny.must(&["resume", "run"]);
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(
        talk.contains("testing the last checkpoint instead of the best"),
        "{talk}"
    );
    let line = tiny.log("run").pop().unwrap();
    assert_eq!((line.event.as_str(), line.step), ("test", 60));
}

#[test]
fn a_changed_config_is_refused_with_its_differences_unless_they_are_free_or_allowed() {
    let tiny = Tiny::new();
    tiny.edit("steps = 60", "steps = 20");
    tiny.must(&["run", "config.toml"]);
    let changes = [
        "--set",
        "train.label_smoothing=0.2",
        "--set",
        "train.adam.beta1=0.8",
    ];
    let before = tiny.read("run/config.toml");
    let output = tiny.train(&with(&["resume", "run"], &changes));
    let talk = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    for part in [
        "error: the config is not what run was trained with",
        "train.label_smoothing: 0.1 → 0.2",
        "train.adam.beta1: 0.9 → 0.8",
        "hint: ",
        "--allow train.adam.beta1",
    ] {
        assert!(talk.contains(part), "{part}: {talk}");
    }
    assert!(
        before == tiny.read("run/config.toml"),
        "nothing was written"
    );
    let allowed = [
        "--allow",
        "train.label_smoothing",
        "--allow",
        "train.adam",
        "--set",
        "train.steps=25",
    ];
    let output = tiny.must(&with(&with(&["resume", "run"], &changes), &allowed));
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(
        talk.contains("from step 20") && talk.contains("train.steps: 20 → 25"),
        "{talk}"
    );
    // It is the run's config now, in the file and in the checkpoint.
    tiny.must(&["resume", "run", "--set", "train.steps=30"]);
    let last = std::fs::read_link(tiny.path("run/last")).unwrap();
    assert_eq!(last.to_str(), Some("checkpoint-30"));
}

#[test]
fn with_another_beam_the_best_bleu_so_far_is_forgotten_and_the_best_loss_is_not() {
    let tiny = Tiny::new();
    tiny.edit("steps = 60", "steps = 40");
    tiny.edit("keep = 2", "keep = 1");
    // Nothing is learnt: every validation has the same BLEU, so the first stays the best.
    tiny.edit("learning_rate = 0.01", "learning_rate = 1e-9");
    for (metric, forgotten) in [("bleu", true), ("chrf", true), ("loss", false)] {
        let (out, metric) = (format!("out={metric}"), format!("train.metric={metric}"));
        let run = &out[4..];
        tiny.must(&["run", "config.toml", "--set", &out, "--set", &metric]);
        let best = fs::read_link(tiny.path(&format!("{run}/best"))).unwrap();

        // Nothing is left to train, so the best so far is tested, as it would be used to translate.
        let output = tiny.must(&["resume", run, "--set", "decode.beam=1"]);
        let talk = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            talk.contains("forgetting the best so far"),
            forgotten,
            "{talk}"
        );
        let LogLine { event, step, .. } = tiny.log(run).pop().unwrap();
        assert_eq!(event, "test");
        assert_eq!(best.to_str(), Some(&*format!("checkpoint-{step}")));
        assert!(tiny.path(&format!("{run}/best/manifest.json")).exists());

        tiny.must(&["resume", run, "--set", "train.steps=50"]);
        let log = tiny.log(run);
        let line = log.iter().rfind(|line| line.event == "validation").unwrap();
        assert_eq!(line.step, 50);
        if forgotten {
            assert!(line.json.contains("\"best\":true"), "{line:?}");
            let best = fs::read_link(tiny.path(&format!("{run}/best"))).unwrap();
            assert_eq!(best.to_str(), Some("checkpoint-50"));
        }
    }
}

#[test]
fn a_second_trainer_is_refused_and_a_dead_one_is_no_obstacle() {
    let tiny = Tiny::new();
    tiny.edit("steps = 60", "steps = 100000");
    let mut child = tiny.command(&["run", "config.toml"]).spawn().unwrap();
    wait_for_step(&mut child, &tiny.path("run"), 12);
    for second in [
        vec!["resume", "run"],
        vec!["run", "config.toml", "--overwrite"],
    ] {
        let output = tiny.train(&second);
        let talk = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{talk}");
        let error = format!(
            "run is locked by another training process (pid {})",
            child.id()
        );
        assert!(talk.contains(&error), "{talk}");
    }
    let doctor = tiny.train(&["doctor", "run"]);
    let found = String::from_utf8_lossy(&doctor.stdout);
    assert!(found.contains("is training here now"), "{found}");
    child.kill().unwrap();
    child.wait().unwrap();
    tiny.must(&["resume", "run", "--set", "train.steps=20"]);
}

#[test]
fn two_signals_of_any_kind_exit_at_once() {
    let tiny = Tiny::new();
    // A first step that takes long: as many batches as would fill minutes.
    let long = [
        "--set",
        "train.accumulate=100000",
        "--set",
        "train.log_every=1",
    ];
    let arguments = with(&["run", "config.toml"], &long);
    let mut child = tiny.command(&arguments).spawn().unwrap();
    // The config is the last thing that is written before the first step.
    while !tiny.path("run/config.toml").exists() {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::thread::sleep(std::time::Duration::from_millis(500));
    let start = std::time::Instant::now();
    signal(&child, "TERM");
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert!(
        child.try_wait().unwrap().is_none(),
        "the first waits for the step"
    );
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(start.elapsed() < std::time::Duration::from_secs(10));
}
