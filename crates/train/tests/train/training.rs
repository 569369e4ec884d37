//! What training does for its user, end to end.

use std::path::PathBuf;

use attend_train::{Config, Stop, train};

use crate::tiny::{Tiny, values};

fn workspace() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn a_small_model_learns_to_translate_on_both_paths() {
    let tiny = Tiny::with_pairs(500);
    tiny.edit("d_model = 16", "d_model = 32\nnorm = \"pre\"");
    tiny.edit("d_ff = 24", "d_ff = 64");
    tiny.edit("batch_tokens = 60", "batch_tokens = 200");
    tiny.edit("moving_average = 0.99", "moving_average = 0.9");
    tiny.edit("steps = 60", "steps = 700");
    tiny.edit("validate_every = 25", "validate_every = 0");
    tiny.edit("save_every = 10", "save_every = 0");
    tiny.edit("accumulate = 2", "accumulate = 1");
    tiny.edit(
        "\ndropout = 0.1\nattention_dropout = 0.1\nactivation_dropout = 0.1",
        "\ndropout = 0.1\nattention_dropout = 0.0\nactivation_dropout = 0.0",
    );
    for path in [&[][..], &["--composed"]] {
        let output = tiny.must(&[&["run", "config.toml", "--overwrite"][..], path].concat());
        let shown = String::from_utf8(output.stdout).unwrap();
        let bleu = shown
            .lines()
            .find_map(|line| line.trim().strip_prefix("BLEU"))
            .expect("a test score");
        let bleu = bleu
            .split('=')
            .nth(1)
            .unwrap()
            .split_whitespace()
            .next()
            .unwrap();
        assert!(bleu.parse::<f64>().unwrap() > 60.0, "{shown}");
        assert!(shown.contains("translation  "), "{shown}");
    }
}

#[test]
fn training_stops_early_when_validation_no_longer_improves() {
    let tiny = Tiny::new();
    let arguments = [
        "run",
        "config.toml",
        "--set",
        "train.patience=2",
        "--set",
        "train.validate_every=5",
        "--set",
        "train.steps=100000",
        "--set",
        "train.schedule.learning_rate=1e-9",
        "--set",
        "train.metric=bleu",
    ];
    let output = tiny.must(&arguments);
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(talk.contains("stopped early"), "{talk}");
    let best = tiny
        .log("run")
        .iter()
        .filter(|line| line.event == "validation")
        .count();
    assert_eq!(
        best, 3,
        "the first is the best, then two without improvement"
    );
}

#[test]
fn testing_the_best_checkpoint_leaves_the_trained_weights_alone() {
    let tiny = Tiny::new();
    // The averaged weights of the checkpoint differ from the ones that are trained.
    let mut run = tiny.start("run", &["train.steps=30", "train.moving_average=0.99"]);
    train(&mut run, &Stop::default()).unwrap();
    let trained = values(&run);
    let translated = run.test().unwrap().expect("there is a test set");
    assert_eq!(translated.lines.len(), 10);
    assert!(trained == values(&run));
}

#[test]
fn epochs_and_minutes_are_limits_too() {
    let tiny = Tiny::new();
    tiny.must(&[
        "run",
        "config.toml",
        "--set",
        "train.epochs=1",
        "--set",
        "train.steps=9999",
    ]);
    let state: serde_json::Value =
        serde_json::from_slice(&tiny.read("run/last/trainer_state.json")).unwrap();
    assert_eq!(
        state["position"],
        serde_json::json!({"epoch": 1, "index": 0, "pool": 0, "stage": 0})
    );
    let minutes = [
        "run",
        "config.toml",
        "--overwrite",
        "--set",
        "train.steps=9999999",
    ];
    tiny.must(&[&minutes[..], &["--set", "train.minutes=0.01"]].concat());
}

#[test]
fn the_last_checkpoints_and_the_best_are_kept() {
    let tiny = Tiny::new();
    tiny.must(&[
        "run",
        "config.toml",
        "--set",
        "train.schedule.kind=constant",
    ]);
    let best = std::fs::read_link(tiny.path("run/best")).unwrap();
    let last = std::fs::read_link(tiny.path("run/last")).unwrap();
    assert_eq!(last, PathBuf::from("checkpoint-60"));
    let entries = std::fs::read_dir(tiny.path("run")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut kept: Vec<String> = names
        .filter(|name| name.starts_with("checkpoint-"))
        .collect();
    kept.sort();
    assert!(
        kept.contains(&best.to_str().unwrap().to_string()),
        "{kept:?}"
    );
    assert!(
        kept.contains(&"checkpoint-60".to_string()) && kept.len() <= 3,
        "{kept:?}"
    );
}

#[test]
fn the_average_of_checkpoints_is_their_mean() {
    use candle_core::{Device, safetensors::load};
    let tiny = Tiny::new();
    tiny.must(&["run", "config.toml", "--set", "train.keep=3"]);
    let output = tiny.must(&["average", "run", "--last", "3"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "run/averaged\n");
    let read = |name: &str| load(tiny.path(name).join("model.safetensors"), &Device::Cpu).unwrap();
    let averaged = read("run/averaged");
    let parts = [
        "run/checkpoint-40",
        "run/checkpoint-50",
        "run/checkpoint-60",
    ]
    .map(read);
    for (name, tensor) in averaged {
        let sum = ((&parts[0][&name] + &parts[1][&name]).unwrap() + &parts[2][&name]).unwrap();
        let error = ((sum / 3.0).unwrap() - tensor)
            .unwrap()
            .abs()
            .unwrap()
            .max_all()
            .unwrap();
        assert!(error.to_scalar::<f32>().unwrap() < 1e-6, "{name}");
    }
    // What is not such a bundle is never replaced.
    tiny.write("run/notes.txt", "mine");
    for taken in ["run", "run/checkpoint-60", ".", "run/.."] {
        let output = tiny.train(&["average", "run", "--last", "2", "-o", taken]);
        let talk = String::from_utf8_lossy(&output.stderr);
        assert!(talk.contains("already exists"), "{taken}: {talk}");
    }
    assert_eq!(tiny.read("run/notes.txt"), b"mine");
    tiny.must(&["average", "run", "--last", "2"]); // over the first one
    let output = tiny.train(&["average", "run", "--last", "30"]);
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(talk.contains("checkpoints, 30 were asked for"), "{talk}");
}

#[test]
fn the_best_checkpoints_are_averaged_and_their_number_is_chosen_on_validation_data() {
    let tiny = Tiny::new();
    let often = ["--set", "train.keep=6", "--set", "train.validate_every=10"];
    tiny.must(&[&["run", "config.toml"][..], &often].concat());
    let said = |arguments: &[&str]| String::from_utf8(tiny.must(arguments).stderr).unwrap();
    let log = tiny.log("run").into_iter();
    let validations = log.filter(|line| line.event == "validation");
    let mut losses: Vec<(f64, u64)> = validations
        .map(|line| {
            let json: serde_json::Value = serde_json::from_str(&line.json).unwrap();
            (json["loss"].as_f64().unwrap(), line.step)
        })
        .collect();
    losses.sort_by(|a, b| a.0.total_cmp(&b.0));
    let steps = |count: usize| {
        let mut steps: Vec<u64> = losses[..count].iter().map(|(_, step)| *step).collect();
        steps.sort();
        format!("averaged the checkpoints of steps {steps:?}")
    };
    assert!(said(&["average", "run", "--best", "2"]).contains(&steps(2)));

    let chosen = said(&[
        "average",
        "run",
        "--best",
        "4",
        "--choose",
        "--threads",
        "1",
    ]);
    let loss = |count: usize| -> f64 {
        let found = chosen.lines().find_map(|line| {
            let (before, loss) = line.split_once(": valid loss ")?;
            before
                .contains(&format!(" {count} checkpoint"))
                .then_some(loss)
        });
        found.expect(&chosen).trim().parse().unwrap()
    };
    assert!((loss(1) - losses[0].0).abs() < 1e-4, "{chosen}");
    let best = (1..=4).reduce(|a, b| if loss(b) < loss(a) { b } else { a });
    assert!(chosen.contains(&steps(best.unwrap())), "{chosen}");
    for (asked, more, error) in [
        ("9", "", "checkpoints, 9 were asked for"),
        ("4", "validation", "checkpoints of run were validated"),
    ] {
        if !more.is_empty() {
            let log = String::from_utf8(tiny.read("run/metrics.jsonl")).unwrap();
            let lines = log.lines().filter(|line| !line.contains(more));
            tiny.write("run/metrics.jsonl", lines.collect::<Vec<_>>().join("\n"));
        }
        let output = tiny.train(&["average", "run", "--best", asked]);
        let talk = String::from_utf8_lossy(&output.stderr);
        assert!(talk.contains(error), "{talk}");
    }
}

#[test]
fn every_config_of_the_project_is_valid_and_its_files_are_there() {
    let folders = ["configs", "configs/history", "configs/recipes"];
    let folders = folders.map(|folder| workspace().join(folder));
    let entries = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut seen = 0;
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            continue;
        }
        // Without what it leaves to a model on the hub.
        let text = std::fs::read_to_string(&path).unwrap();
        let config = Config::parse(&text, &path.display().to_string(), &[]);
        let config = config.unwrap_or_else(|error| panic!("{error}"));
        for paths in config.data.train.iter().chain(&config.data.valid) {
            let prefixes = match toml::Value::try_from(paths).unwrap() {
                toml::Value::Array(list) => list,
                one => vec![one],
            };
            for prefix in prefixes {
                // A table, or a prefix of text. Scenes are drawn on first use, and what is in `runs` is made by a
                // command in the head of the config.
                let name = match prefix.get("path") {
                    Some(table) => table.as_str().unwrap().to_string(),
                    None => format!("{}.en", prefix.as_str().unwrap()),
                };
                let name = match name.strip_prefix("data/scenes/") {
                    Some(_) => "data/scenes/README.md",
                    None => &*name,
                };
                if name.starts_with("runs/") {
                    assert!(text.contains("mkdir -p runs/"), "{}", path.display());
                    continue;
                }
                if name.starts_with("hf://") {
                    continue;
                }
                let file = workspace().join(name);
                assert!(file.exists(), "{} names {}", path.display(), file.display());
            }
        }
        seen += 1;
    }
    assert!(seen >= 18, "quickstart, base, big, the history and recipes");
}

#[test]
fn a_resolved_config_resolves_to_itself_and_overrides_are_in_it() {
    let tiny = Tiny::new();
    let set = ["--set", "train.steps=5", "--set", "out=elsewhere/run"];
    let output = tiny.must(&[&["config", "config.toml"][..], &set].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("steps = 5") && text.contains("out = \"elsewhere/run\""),
        "{text}"
    );
    assert!(
        text.contains("beta2 = 0.98"),
        "defaults are filled in: {text}"
    );
    tiny.write("resolved.toml", &text);
    let again = tiny.must(&["config", "resolved.toml"]);
    assert_eq!(String::from_utf8(again.stdout).unwrap(), text);
}

#[test]
fn the_schema_describes_every_section() {
    let output = Tiny::new().must(&["config", "--schema"]);
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for section in ["seed", "out", "data", "model", "train", "decode"] {
        assert!(schema["properties"].get(section).is_some(), "{section}");
    }
}

#[test]
fn a_run_with_a_flipped_bit_does_not_translate_wrongly_but_says_so() {
    let tiny = Tiny::new();
    tiny.must(&["run", "config.toml"]);
    let name = "run/best/model.safetensors";
    let mut bytes = tiny.read(name);
    let last = bytes.len() - 2;
    bytes[last] ^= 1;
    tiny.write(name, bytes);
    let opened = attend_infer::Bundle::open(&tiny.path("run"), &candle_core::Device::Cpu);
    let error = opened.err().expect("an error").to_string();
    assert!(
        error.contains("model.safetensors: not what was written"),
        "{error}"
    );
}

#[test]
fn a_profile_shares_out_the_whole_time_of_the_steps_and_nothing_else() {
    let tiny = Tiny::with_pairs(100);
    let output = tiny.must(&["run", "config.toml", "--profile"]);
    let said = String::from_utf8(output.stderr).unwrap();
    let shares = said.lines().filter_map(|line| {
        let (name, numbers) = line.strip_prefix("  ")?.split_at_checked(38)?;
        let share = numbers.split_once(" ms ")?.1.trim().strip_suffix('%')?;
        Some((name.trim(), share.parse::<f64>().ok()?))
    });
    let mut shares: Vec<(&str, f64)> = shares.collect();
    assert_eq!(shares.pop(), Some(("a step", 100.0)), "{said}");
    assert!(shares.iter().any(|(name, _)| *name == "linear, forward"));
    // Validating, which uses the same operations, is not among them: nothing is left below zero.
    assert!(
        shares.iter().all(|(_, share)| (0.0..100.0).contains(share)),
        "{said}"
    );
    let sum: f64 = shares.iter().map(|(_, share)| share).sum();
    assert!((sum - 100.0).abs() < 1.0, "{said}");
}
