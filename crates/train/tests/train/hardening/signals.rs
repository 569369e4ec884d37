//! Signals, and terminals that are closed.

use super::*;

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
        "train.translate=20000", // the old name, which cfc49ae knows too
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
fn a_signal_ends_a_process_that_reads_its_data() {
    let tiny = Tiny::new();
    for side in ["train.a", "train.b"] {
        tiny.write(side, text(&tiny.read(side)).repeat(20_000)); // takes seconds to read
    }
    for (name, status) in [("TERM", 143), ("INT", 130), ("HUP", 129)] {
        let child = tiny.command(&RUN).spawn().unwrap();
        sleep(Duration::from_millis(300));
        signal(&child, name);
        let output = finish_within(2, child);
        assert_eq!(output.status.code(), Some(status));
        assert!(!tiny.path("run").exists());
    }
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
