//! Lines, words, models and options that are too large or wrong.

use super::*;

#[test]
fn an_overlong_validation_line_is_left_out_and_counted() {
    let tiny = Tiny::new();
    tiny.edit("steps = 60", "steps = 25");
    add_line(&tiny, "valid", 200_000);
    let talk = talk_of(&tiny, 60, &RUN);
    let report = "kept 10 of 11 pairs; dropped 1 longer than data.max_length";
    assert!(talk.contains(report), "{talk}");
    assert!(talk.contains("step 25 · valid loss"), "{talk}");
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
fn the_schema_has_the_bounds_of_numbers_as_they_are_written() {
    let tiny = Tiny::new();
    let schema = text(&tiny.must(&["config", "--schema"]).stdout);
    assert!(!schema.contains("0.60000002"), "{schema}");
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let transformer = &schema["$defs"]["TransformerConfig"]["properties"];
    assert_eq!(transformer["heads"]["minimum"], 1);
    assert_eq!(transformer["dropout"]["exclusiveMaximum"], 1);
}
