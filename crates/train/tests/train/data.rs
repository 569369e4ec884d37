//! Corpora: checking, preparing, mixing and changing them, and the cache.

use std::fs;

use attend_train::Config;
use serde_json::Value;

use crate::tiny::Tiny;

pub(crate) fn stdout(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The config with two corpora and random changes of the text in the place of `data.train`.
fn mixed(tiny: &Tiny) {
    for side in ["a", "b"] {
        let text = String::from_utf8(tiny.read(&format!("train.{side}"))).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        tiny.write(&format!("first.{side}"), lines[..90].join("\n"));
        tiny.write(&format!("second.{side}"), lines[90..].join("\n"));
    }
    tiny.edit("train = \"train\"\n", "");
    let corpora = "\
        [data.augment]\nsubword_dropout = 0.3\nword_dropout = 0.1\nuppercase = 0.1\nswap_chars = 0.05\n\
        [[data.corpora]]\npath = \"first\"\nweight = 3\ntag = \">>first<<\"\n\
        [[data.corpora]]\npath = \"second\"\nweight = 1\nfrom_step = 7\n\
        [model.transformer]\n";
    tiny.edit("[model.transformer]\n", corpora);
}

#[test]
fn every_example_of_the_documentation_is_a_config() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/data.md");
    let text = fs::read_to_string(path).unwrap();
    let examples: Vec<&str> = text.split("```toml\n").skip(1).collect();
    assert!(examples.len() >= 2);
    for example in examples {
        let example = example.split("```").next().unwrap();
        let mut config = "out = \"run\"\n".to_string();
        if !example.contains("[data]\n") {
            config += "[data]\nsource = \"en\"\ntarget = \"de\"\n";
            if !example.contains("[[data.corpora]]") {
                config += "train = \"corpus/train\"\n";
            }
        }
        let config = Config::parse(&(config + example), "docs/data.md", &[]);
        config.unwrap_or_else(|error| panic!("{example}: {error}"));
    }
}

#[test]
fn a_check_reports_what_training_would_do_and_trains_nothing() {
    let tiny = Tiny::new();
    let report = stdout(&tiny.must(&["check", "config.toml"]));
    for text in [
        "kept 120 of 120 pairs",
        "% unknown",
        "▇",
        "overlap: ",
        "batches an epoch",
        "parameters: ",
        "memory: about ",
        "target tokens a second",
    ] {
        assert!(report.contains(text), "{text} is not in {report}");
    }
    assert!(report.ends_with("training can start\n"), "{report}");
    assert!(!tiny.path("run").exists());
    let json = stdout(&tiny.must(&["check", "config.toml", "--json"]));
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["training"][0]["counts"]["kept"], 120);
    let batches = report["stages"][0]["batches"].as_u64().unwrap();
    tiny.must(&[
        "run",
        "config.toml",
        "--set",
        "train.epochs=1",
        "--set",
        "train.accumulate=1",
    ]);
    let steps = tiny.log("run").iter().map(|line| line.step).max();
    assert_eq!(steps.unwrap(), batches.min(60));
}

#[test]
fn a_check_lists_every_bad_line_and_fails() {
    let tiny = Tiny::new();
    let mut bytes = tiny.read("train.a");
    let lines: Vec<usize> = (0..bytes.len()).filter(|&i| bytes[i] == b'\n').collect();
    bytes[lines[4] + 1] = 0xff; // of line 6
    bytes[lines[9] + 1] = 0; // of line 11
    tiny.write("train.a", bytes);
    let output = tiny.train(&["check", "config.toml"]);
    let report = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{report}");
    for text in [
        "train.a:6: not valid UTF-8",
        "train.a:11: ",
        "lines that cannot be read: 2",
    ] {
        assert!(report.contains(text), "{text} is not in {report}");
    }
    assert!(report.ends_with("training cannot start\n"), "{report}");
    let refused = tiny.train(&["run", "config.toml"]);
    assert!(stderr(&refused).contains("train.a:6: not valid UTF-8"));
    let skip = ["--set", "data.bad_lines=skip"];
    let report = stdout(&tiny.must(&[
        "check",
        "config.toml",
        skip[0],
        skip[1],
        "--show-dropped",
        "5",
    ]));
    assert!(report.contains("kept 118 of 120 pairs"), "{report}");
    assert!(
        report.contains("train.a:6") && report.contains("train.a:11"),
        "{report}"
    );
    tiny.must(&[
        "run",
        "config.toml",
        "--set",
        "train.steps=2",
        skip[0],
        skip[1],
    ]);
}

#[test]
fn dropped_pairs_are_counted_by_reason_and_shown_with_file_and_line() {
    let tiny = Tiny::new();
    let add = |side: &str, lines: &str| {
        let text = String::from_utf8(tiny.read(&format!("train.{side}"))).unwrap();
        tiny.write(&format!("train.{side}"), text + lines);
    };
    add(
        "a",
        "one two\none two\n\nsame\none one one one one one one one one\n",
    );
    add("b", "eins zwei\neins zwei\nleer\nsame\neins\n");
    let set = "data.clean={ duplicates = true, same = true, max_ratio = 3, overlap = true }";
    let output = tiny.must(&[
        "check",
        "config.toml",
        "--set",
        set,
        "--show-dropped",
        "1",
        "--json",
    ]);
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let dropped = &report["training"][0]["counts"]["dropped"];
    for reason in ["duplicate", "empty", "same", "ratio"] {
        assert!(dropped[reason].as_u64() >= Some(1), "{reason}: {dropped}");
    }
    let shown = report["dropped"].as_array().unwrap();
    let empty = shown.iter().find(|pair| pair["reason"] == "empty").unwrap();
    assert_eq!(
        (&empty["file"], &empty["line"]),
        (&"train.a".into(), &123.into())
    );
    assert_eq!(empty["target"], "leer");
}

#[test]
fn what_is_prepared_is_not_made_again() {
    let tiny = Tiny::new();
    tiny.must(&["prepare", "config.toml"]);
    let list = |tiny: &Tiny| stdout(&tiny.must(&["cache", "attend-cache"]));
    let listed = list(&tiny);
    assert_eq!(listed.matches(" corpus ").count(), 2, "{listed}");
    assert_eq!(listed.matches(" tokenizer ").count(), 1, "{listed}");
    let talk = stderr(&tiny.must(&["run", "config.toml", "--set", "train.steps=1"]));
    assert!(
        !talk.contains("encoding") && !talk.contains("tokenizer on"),
        "{talk}"
    );
    let key = listed
        .lines()
        .find(|line| line.contains("train.a"))
        .unwrap();
    let key = key.split_whitespace().next().unwrap();
    tiny.must(&["cache", "attend-cache", "--remove", key]);
    assert!(!list(&tiny).contains(key));
    let refused = tiny.train(&["cache", "attend-cache", "--remove", "../run"]);
    assert!(stderr(&refused).contains("has no entry ../run"));
    tiny.must(&["cache", "attend-cache", "--clear"]);
    assert_eq!(list(&tiny).trim(), "the cache is empty");
    // A run goes on without its cache.
    tiny.must(&["resume", "run", "--set", "train.steps=4"]);
    assert!(!stdout(&tiny.must(&["ls", "."])).contains("cache"));
}

#[test]
fn a_mixture_with_stages_and_random_changes_resumes_to_the_same_bits() {
    let tiny = Tiny::new();
    mixed(&tiny);
    let verified = stdout(&tiny.must(&["verify-resume", "config.toml", "--steps", "14"]));
    assert!(verified.contains("the same bits"), "{verified}");
    for (out, threads) in [("one", "1"), ("two", "2")] {
        let set = format!("out={out}");
        let steps = ["--set", "train.steps=14", "--threads", threads];
        tiny.must(&[&["run", "config.toml", "--set", &set], &steps[..]].concat());
    }
    assert_eq!(tiny.outcome("one"), tiny.outcome("two"));
}

#[test]
fn a_corpus_that_changed_is_named_when_a_run_is_resumed() {
    let tiny = Tiny::new();
    mixed(&tiny);
    tiny.must(&["run", "config.toml", "--set", "train.steps=8"]);
    let more = ["resume", "run", "--set", "train.steps=9"];
    let text = String::from_utf8(tiny.read("second.a")).unwrap();
    tiny.write("second.a", text.replacen("one", "two", 1));
    let refused = stderr(&tiny.train(&more));
    assert!(
        refused.contains("changed: second.a and second.b\n"),
        "{refused}"
    );
    let allowed = [&more[..], &["--allow", "data.corpora"]].concat();
    let talk = stderr(&tiny.must(&allowed));
    assert!(talk.contains("continuing with the next epoch"), "{talk}");
    tiny.must(&["resume", "run", "--set", "train.steps=10"]); // not asked again
}

#[test]
fn corpora_that_cannot_be_mixed_are_refused_by_key() {
    let tiny = Tiny::new();
    tiny.edit("train = \"train\"\n", "");
    let corpora = |text: &str| {
        let set = format!("data.corpora={text}");
        let output = tiny.train(&["config", "config.toml", "--set", &set]);
        assert!(!output.status.success());
        stderr(&output)
    };
    for (text, message) in [
        (
            "[{ path = \"train\", weight = 1 }, { path = \"valid\" }]",
            "data.corpora.1.weight",
        ),
        (
            "[{ path = \"train\", weight = 1, passes = 2 }]",
            "data.corpora.0.passes",
        ),
        (
            "[{ path = \"train\", from_step = 5 }]",
            "no corpus is used at step 0",
        ),
        (
            "[{ path = \"train\", from_step = 5, until_step = 5 }]",
            "data.corpora.0.until_step",
        ),
        ("[{ weight = 1 }]", "data.corpora.0.path: is missing"),
        (
            "[{ path = \"train\", tag = \"two words\" }]",
            "data.corpora.0.tag",
        ),
        ("[{ path = \"train\", weight = 0 }]", "weight: is 0"),
        ("[]", "data.train: is missing"),
    ] {
        let error = corpora(text);
        assert!(error.contains(message), "{text}: {error}");
    }
    let both = tiny.train(&[
        "config",
        "config.toml",
        "--set",
        "data.train=\"train\"",
        "--set",
        "data.corpora=[{ path = \"train\" }]",
    ]);
    assert!(stderr(&both).contains("data.corpora: is set, and data.train too"));
}

#[test]
fn a_run_of_an_older_program_goes_on_with_the_next_epoch() {
    let tiny = Tiny::new();
    tiny.must(&["run", "config.toml", "--set", "train.steps=8"]);
    let path = "run/checkpoint-8/provenance.json";
    let mut provenance: Value = serde_json::from_slice(&tiny.read(path)).unwrap();
    provenance["data"] = "0123456789abcdef".into();
    provenance.as_object_mut().unwrap().remove("corpora");
    tiny.write(path, provenance.to_string());
    let path = "run/checkpoint-8/trainer_state.json";
    let mut state: Value = serde_json::from_slice(&tiny.read(path)).unwrap();
    state["position"] = serde_json::json!({"epoch": 0, "index": 900}); // no pools, but more batches
    tiny.write(path, state.to_string());
    tiny.accept_changes("run/checkpoint-8");
    let resume = ["resume", "run", "--set", "train.steps=9"];
    let talk = stderr(&tiny.must(&resume));
    assert!(talk.contains("continuing with the next epoch"), "{talk}");
    let talk = stderr(&tiny.must(&["resume", "run", "--set", "train.steps=10"]));
    assert!(!talk.contains("next epoch"), "{talk}");
}

#[test]
fn of_a_plain_and_a_compressed_file_the_one_that_is_read_is_named() {
    let tiny = Tiny::new();
    tiny.write("train.a.gz", "not gzip");
    let talk = stderr(&tiny.must(&["prepare", "config.toml"]));
    assert!(
        talk.contains("train.a is read, and train.a.gz is not"),
        "{talk}"
    );
}
