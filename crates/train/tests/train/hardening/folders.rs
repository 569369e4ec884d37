//! Folders and files that are not what a run wrote.

use super::*;

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
