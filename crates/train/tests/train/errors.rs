//! What a user can get wrong: one line that says what and where, a hint, and nothing written.

use std::fs;
use std::time::Instant;

use crate::tiny::Tiny;

/// Runs the command and checks its complaint; the output folder must not have appeared.
pub(crate) fn refuses(tiny: &Tiny, arguments: &[&str], error: &str, hint: &str) {
    refuses_and_leaves(tiny, arguments, error, hint);
    assert!(!tiny.path("run").exists(), "something was written");
}

/// The same where a run exists already.
pub(crate) fn refuses_and_leaves(tiny: &Tiny, arguments: &[&str], error: &str, hint: &str) {
    let output = tiny.train(arguments);
    let talk = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = talk.lines().filter(|line| !line.contains("INFO")).collect();
    assert_eq!(output.status.code(), Some(1), "{talk}");
    assert!(
        lines[0].starts_with("error: ") && lines[0].contains(error),
        "{talk}"
    );
    assert!(
        lines.len() == 3 && lines[1].is_empty(),
        "an error, a blank line, a hint: {talk}"
    );
    assert!(
        lines[2].starts_with("hint: ") && lines[2].contains(hint),
        "{talk}"
    );
    assert!(output.stdout.is_empty());
}

const RUN: [&str; 2] = ["run", "config.toml"];

#[test]
fn a_missing_file_is_named() {
    let tiny = Tiny::new();
    fs::remove_file(tiny.path("train.b")).unwrap();
    refuses(&tiny, &RUN, "no such file: train.b", "relative");
}

#[test]
fn unequal_line_counts_are_both_shown() {
    let tiny = Tiny::new();
    tiny.write("train.b", "eins\nzwei\n");
    let error = "train.a has 120 lines but train.b has 2";
    refuses(&tiny, &RUN, error, "translation");
}

#[test]
fn invalid_utf8_is_found_by_file_and_line() {
    let tiny = Tiny::new();
    let mut bytes = tiny.read("valid.a");
    let second = bytes.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    bytes[second] = 0xff;
    tiny.write("valid.a", bytes);
    refuses(&tiny, &RUN, "valid.a:2: not valid UTF-8", "iconv");
}

#[test]
fn an_unknown_key_gets_its_line_and_the_nearest_right_one() {
    let tiny = Tiny::new();
    tiny.edit("heads = 2", "n_heads = 2");
    let error = "config.toml:20: unknown key `n_heads` in [model.transformer]";
    refuses(&tiny, &RUN, error, "did you mean `heads`?");
}

#[test]
fn an_unknown_key_on_the_command_line_is_an_error_too() {
    let tiny = Tiny::new();
    let arguments = ["run", "config.toml", "--set", "train.stepz=5"];
    refuses(
        &tiny,
        &arguments,
        "--set train.stepz=5: unknown key `stepz` in [train]",
        "`steps`",
    );
}

#[test]
fn an_option_of_attention_that_would_be_ignored_or_cannot_be_is_refused() {
    let tiny = Tiny::new();
    let config = String::from_utf8(tiny.read("config.toml")).unwrap();
    let (before, rest) = config.split_once("[model.transformer]").unwrap();
    let (_, after) = rest.split_once("[train]").unwrap();
    for (model, error, hint) in [
        (
            "attention = \"luongg\"",
            "unknown value `luongg` in [model.recurrent]",
            "`luong`",
        ),
        (
            "attention = { scor = \"dot\" }",
            "unknown key `scor` in [model.recurrent.attention]",
            "`score`",
        ),
        (
            "attention = { window = 3 }",
            "model.recurrent.attention.window: has no effect here",
            "local-p",
        ),
        (
            "attention = { order = \"bahdanau\", input_feeding = false }",
            "model.recurrent.attention.input_feeding: has no effect here",
            "luong",
        ),
        (
            "attention = { activation = \"relu\" }",
            "model.recurrent.attention.activation: has no effect here",
            "additive",
        ),
        (
            "attention = { sharpness = \"emitted\" }",
            "model.recurrent.attention.sharpness: has no effect here",
            "cosine",
        ),
        (
            "attention = { align = \"local-m\", deviation = \"learned\" }",
            "model.recurrent.attention.deviation: has no effect here",
            "local-p",
        ),
        (
            "context = \"every\"",
            "model.recurrent.context: \"every\" is for decoders without attention",
            "attention = \"none\"",
        ),
        (
            "reverse_source = true",
            "model.recurrent.reverse_source: has no effect",
            "bidirectional = false",
        ),
        ("d_hidden = 7", "d_hidden = 7 is odd", "even"),
        (
            "d_embed = 8",
            "d_embed = d_hidden, but they are 8 and 512",
            "tie = \"none\"",
        ),
    ] {
        let text = format!("{before}[model.recurrent]\n{model}\n[train]{after}");
        tiny.write("config.toml", text);
        refuses(&tiny, &RUN, error, hint);
    }
    tiny.write("config.toml", config);
    let set = [
        "run",
        "config.toml",
        "--set",
        "model.transformer.score=location",
    ];
    refuses(&tiny, &set, "does not compare a query with a key", "cosine");
    let set = [
        "run",
        "config.toml",
        "--set",
        "model.transformer.score=[\"dot\", \"dot\", \"dot\"]",
    ];
    refuses(&tiny, &set, "3 scores for 2 heads", "one for all heads");
}

#[test]
fn a_width_that_heads_do_not_divide_is_refused() {
    let tiny = Tiny::new();
    let arguments = ["run", "config.toml", "--set", "model.transformer.heads=3"];
    refuses(
        &tiny,
        &arguments,
        "d_model = 16 is not divisible by heads = 3",
        "heads that divide",
    );
}

#[test]
fn an_empty_corpus_is_refused() {
    let tiny = Tiny::new();
    tiny.write("train.a", "");
    tiny.write("train.b", "");
    let error = "no sentences in train.a, train.b";
    refuses(&tiny, &RUN, error, "sentence");
}

#[test]
fn tying_all_embeddings_without_one_vocabulary_is_refused_before_any_data_is_read() {
    let tiny = Tiny::with_pairs(200_000);
    let files = "data.tokenizer={ file = { source = \"a.json\", target = \"b.json\" } }";
    for separate in ["data.tokenizer.joint=false", files] {
        let start = Instant::now();
        refuses(
            &tiny,
            &["run", "config.toml", "--set", separate],
            "model.transformer.tie: tie = \"all\" needs one vocabulary for both sides",
            "tie = \"decoder\"",
        );
        let seconds = start.elapsed().as_secs_f64();
        assert!(seconds < 1.0, "it took {seconds} seconds");
    }
}

#[cfg(not(feature = "cuda"))]
#[test]
fn cuda_is_not_silently_replaced_by_the_cpu() {
    let tiny = Tiny::new();
    let arguments = ["run", "config.toml", "--device", "cuda"];
    refuses(
        &tiny,
        &arguments,
        "this build has no CUDA",
        "--features cuda",
    );
}

#[test]
fn a_folder_without_a_checkpoint_cannot_be_resumed() {
    let tiny = Tiny::new();
    fs::create_dir(tiny.path("empty")).unwrap();
    for folder in ["empty", "nowhere"] {
        let error = format!("`{folder}` has no checkpoint");
        refuses(&tiny, &["resume", folder], &error, "train run CONFIG");
    }
}

#[test]
fn a_used_folder_is_kept_unless_told_otherwise() {
    let tiny = Tiny::new();
    tiny.must(&RUN);
    let before = tiny.outcome("run");
    let output = tiny.train(&["run", "config.toml", "--set", "seed=8"]);
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(talk.contains("error: run already holds a run"), "{talk}");
    assert!(
        talk.contains("`train resume run`") && talk.contains("--overwrite"),
        "{talk}"
    );
    assert!(before == tiny.outcome("run"));
    tiny.must(&["run", "config.toml", "--set", "seed=8", "--overwrite"]);
    assert!(before != tiny.outcome("run"));
}

#[test]
fn data_that_the_model_does_not_read_is_refused_with_what_to_change() {
    let tiny = Tiny::new();
    let files = "data.train={ source = \"train.a\", target = \"train.b\" }";
    let valid = "data.valid={ source = \"valid.a\", target = \"valid.b\" }";
    let test = "data.test={ source = \"test.a\", target = \"test.b\" }";
    for kind in ["pictures", "features"] {
        let kind_is = format!("data.source_kind={kind}");
        let arguments = [
            "run",
            "config.toml",
            "--set",
            files,
            "--set",
            valid,
            "--set",
            test,
            "--set",
            &kind_is,
        ];
        let error = format!("data.source_kind: is \"{kind}\", but the model reads text");
        refuses(&tiny, &arguments, &error, "[model.caption]");
    }
}
