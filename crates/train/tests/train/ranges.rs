//! The range of every number in a config: in the schema, and enforced.

use std::collections::{BTreeMap, BTreeSet};

use attend_train::Config;
use serde_json::Value;

use crate::tiny::Tiny;

/// Numbers without a smallest value. They must still be finite.
const UNBOUNDED: [&str; 1] = ["decode.length_penalty"];

/// Keys that can hold the number of a column, in a table that takes the place of a prefix.
const COLUMNS: [&str; 6] = [
    "data.train.source",
    "data.train.target",
    "data.valid.source",
    "data.valid.target",
    "data.test.source",
    "data.test.target",
];

/// A key, values just inside its range, and values just outside.
type Row = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

const SIZE: (&[&str], &[&str]) = (&["1", "100000"], &["0", "100001"]);
const RATE: (&[&str], &[&str]) = (&["0", "0.9999999"], &["-0.0000001", "1", "nan"]);
const SHARE: (&[&str], &[&str]) = (&["0", "1"], &["-0.0000001", "1.0000001", "nan"]);
const COUNT: (&[&str], &[&str]) = (&["1"], &["0"]);
const ANY: (&[&str], &[&str]) = (&["0"], &[]); // -1 is no unsigned number, which is another error
const ABOVE_ZERO: (&[&str], &[&str]) = (&["1e-300"], &["0", "-1", "inf", "nan"]);
const ABOVE_ZERO_F32: (&[&str], &[&str]) = (&["1e-30"], &["0", "-1", "inf", "nan"]);
const FACTOR: (&[&str], &[&str]) = (&["0"], &["-0.0000001", "inf", "nan"]);

const ROWS: [Row; 95] = [
    row("seed", ANY),
    row("data.batch_tokens", COUNT),
    ("data.max_length", &["2"], &["1"]),
    (
        "data.tokenizer.vocab_size",
        &["4", "10000000"],
        &["3", "10000001"],
    ),
    row("data.tokenizer.min_frequency", ANY),
    row("data.tokenizer.sample", COUNT),
    row("data.clean.min_tokens", COUNT),
    row("data.clean.max_chars", COUNT),
    ("data.clean.max_ratio", &["1"], &["0.9999999", "inf", "nan"]),
    row("data.clean.min_letters", SHARE),
    row("data.augment.subword_dropout", RATE),
    (
        "data.augment.subword_alpha",
        &["0", "10"],
        &["-0.0000001", "10.0000001", "nan"],
    ),
    row("data.augment.word_dropout", RATE),
    row("data.augment.uppercase", SHARE),
    row("data.augment.titlecase", SHARE),
    row("data.augment.swap_chars", SHARE),
    row("data.augment.delete_chars", SHARE),
    row("model.transformer.encoder_layers", SIZE),
    row("model.transformer.decoder_layers", SIZE),
    row("model.transformer.d_model", SIZE),
    row("model.transformer.heads", SIZE),
    row("model.transformer.d_ff", SIZE),
    row("model.transformer.dropout", RATE),
    row("model.transformer.attention_dropout", RATE),
    row("model.transformer.activation_dropout", RATE),
    row("model.transformer.layer_dropout", RATE),
    row("model.recurrent.encoder_layers", SIZE),
    row("model.recurrent.decoder_layers", SIZE),
    row("model.recurrent.d_embed", SIZE),
    row("model.recurrent.d_hidden", SIZE),
    row("model.recurrent.dropout", RATE),
    row("model.recurrent.attention.positions", SIZE),
    row("model.recurrent.attention.window", SIZE),
    row("model.recurrent.attention.entropy", FACTOR),
    row("model.recurrent.attention.reinforce", FACTOR),
    (
        "model.recurrent.attention.soft_share",
        &["0", "1"],
        &["-0.0000001", "1.0000001", "nan"],
    ),
    row("model.recurrent.attention.doubly_stochastic", FACTOR),
    ("model.snail.blocks", &["1", "1000"], &["0", "1001"]),
    row("model.snail.d_model", SIZE),
    row("model.snail.filters", SIZE),
    ("model.snail.span", &["2", "100000"], &["1", "100001"]),
    row("model.snail.d_key", SIZE),
    row("model.snail.d_value", SIZE),
    row("model.snail.dropout", RATE),
    row("model.caption.features", SIZE),
    row("model.caption.dropout", RATE),
    (
        "model.caption.picture.height",
        &["1", "4096"],
        &["0", "4097"],
    ),
    (
        "model.caption.picture.width",
        &["1", "4096"],
        &["0", "4097"],
    ),
    row("model.lstmn.encoder_layers", SIZE),
    row("model.lstmn.decoder_layers", SIZE),
    row("model.lstmn.d_embed", SIZE),
    row("model.lstmn.d_hidden", SIZE),
    row("model.lstmn.dropout", RATE),
    row("train.steps", COUNT),
    row("train.epochs", COUNT),
    row("train.minutes", ABOVE_ZERO),
    ("train.accumulate", &["1", "1000000"], &["0", "1000001"]),
    row("train.label_smoothing", RATE),
    row("train.word_dropout", RATE),
    row("train.clip_norm", ABOVE_ZERO),
    row("train.moving_average", RATE),
    row("train.validate_every", ANY),
    row("train.translate_sentences", ANY),
    row("train.samples", ANY),
    row("train.patience", COUNT),
    row("train.save_every", ANY),
    row("train.keep", COUNT),
    row("train.log_every", COUNT),
    row("train.max_skipped", COUNT),
    ("train.spike", &["1.0000001"], &["1", "inf", "nan"]),
    row("train.consistency.weight", ABOVE_ZERO_F32),
    (
        "train.consistency.cut_rate",
        &["1e-30", "0.9999999"],
        &["0", "1", "nan"],
    ),
    row("train.schedule.learning_rate", ABOVE_ZERO),
    row("train.schedule.warmup", ANY),
    row("train.schedule.minimum", FACTOR),
    row("train.adam.beta1", RATE),
    row("train.adam.beta2", RATE),
    (
        "train.adam.epsilon",
        &["1e-30", "0.9999999"],
        &["9e-31", "1", "nan"],
    ),
    row("train.adam.weight_decay", FACTOR),
    ("decode.beam", &["1", "1000"], &["0", "1001"]),
    ("decode.length_penalty", &["-1e30", "1e30"], &["inf", "nan"]),
    row("decode.coverage_penalty", FACTOR),
    ("decode.max_length", &["2"], &["1"]),
    row("decode.max_length_ratio", FACTOR),
    row("decode.min_length", ANY),
    row("decode.min_length_ratio", FACTOR),
    row("decode.no_repeat_ngram", ANY),
    row("decode.repetition_penalty", ABOVE_ZERO_F32),
    row("decode.temperature", ABOVE_ZERO_F32),
    row("decode.top_k", ANY),
    ("decode.top_p", &["1e-30", "1"], &["0", "1.0000001", "nan"]),
    row("decode.min_p", SHARE),
    row("decode.seed", ANY),
    ("decode.max_source_length", &["2"], &["1"]),
    row("decode.batch_tokens", COUNT),
];

const fn row(
    key: &'static str,
    (inside, outside): (&'static [&'static str], &'static [&'static str]),
) -> Row {
    (key, inside, outside)
}

/// All rows: a captioning model has a table of another family inside it, whose encoder can be without layers.
fn rows() -> Vec<(String, &'static [&'static str], &'static [&'static str])> {
    let mut rows = Vec::new();
    for (key, inside, outside) in ROWS {
        rows.push((key.to_string(), inside, outside));
        let family = ["model.recurrent.", "model.transformer."];
        if family.iter().any(|family| key.starts_with(family)) {
            let key = key.replacen("model.", "model.caption.", 1);
            let layers = key.ends_with(".encoder_layers");
            let (inside, outside) = match layers {
                true => (&["0", "100000"][..], &["100001"][..]),
                false => (inside, outside),
            };
            rows.push((key, inside, outside));
        }
    }
    rows
}

/// The schema of every key that holds a number, by its dotted name.
fn numbers() -> BTreeMap<String, Value> {
    fn walk(root: &Value, schema: &Value, key: &str, found: &mut BTreeMap<String, Value>) {
        if let Some(reference) = schema["$ref"].as_str() {
            let target = root.pointer(&reference[1..]).expect("a definition");
            walk(root, target, key, found);
        }
        for keyword in ["anyOf", "oneOf"] {
            for branch in schema[keyword].as_array().into_iter().flatten() {
                walk(root, branch, key, found);
            }
        }
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            let key = format!("{key}.{name}");
            walk(root, schema, key.trim_start_matches('.'), found);
        }
        let kinds = schema["type"].to_string();
        if kinds.contains("number") || kinds.contains("integer") {
            found.insert(key.to_string(), schema.clone());
        }
    }
    let schema: Value = serde_json::from_str(&Config::schema()).unwrap();
    let mut found = BTreeMap::new();
    walk(&schema, &schema, "", &mut found);
    found.retain(|key, _| !COLUMNS.contains(&&**key));
    found
}

#[test]
fn the_schema_has_the_range_of_every_number() {
    let numbers = numbers();
    for (key, schema) in &numbers {
        let lowest = schema.get("minimum").or(schema.get("exclusiveMinimum"));
        assert_eq!(
            lowest.is_none(),
            UNBOUNDED.contains(&&**key),
            "{key}: {schema}"
        );
        if key.contains("dropout") {
            assert_eq!(schema["minimum"], 0, "{key}");
            assert_eq!(schema["exclusiveMaximum"], 1, "{key}");
        }
    }
    assert_eq!(numbers["model.transformer.heads"]["minimum"], 1);
    assert_eq!(numbers["model.transformer.heads"]["maximum"], 100_000);
    assert_eq!(numbers["train.spike"]["exclusiveMinimum"], 1);
}

#[test]
fn the_schema_shows_defaults_as_they_are_written() {
    let numbers = numbers();
    assert_eq!(numbers["decode.length_penalty"]["default"], 0.6);
    assert_eq!(numbers["train.label_smoothing"]["default"], 0.1);
    assert_eq!(numbers["train.adam.beta2"]["default"], 0.98);
    assert_eq!(numbers["train.adam.epsilon"]["default"], 1e-9);
    assert!(!Config::schema().contains("0000000149"));
}

#[test]
fn the_table_of_this_test_has_every_number() {
    let keys: BTreeSet<String> = rows().into_iter().map(|(key, ..)| key).collect();
    assert_eq!(keys, numbers().into_keys().collect());
}

#[test]
fn a_number_just_outside_its_range_is_refused_by_its_key_and_one_just_inside_is_not() {
    let tiny = Tiny::new();
    let text = String::from_utf8(tiny.read("config.toml")).unwrap();
    let (before, rest) = text.split_once("[model.transformer]").unwrap();
    let (_, after) = rest.split_once("[train]").unwrap();
    tiny.write("other.toml", format!("{before}[train]{after}"));
    let complaint = |key: &str, value: &str| {
        let mut overrides = vec![format!("{key}={value}")];
        let beside = |other: &str| format!("{}.{other}", key.rsplit_once('.').unwrap().0);
        match key.split('.').next_back().unwrap() {
            "minimum" => overrides.push("train.schedule.kind=linear".into()),
            "positions" => overrides.push(beside("score=location")),
            "window" => overrides.push(beside("align=local-m")),
            "entropy" | "reinforce" | "soft_share" => overrides.push(beside("context=hard")),
            "weight" => overrides.push(beside("kind=simcut")),
            "cut_rate" => overrides.extend([beside("kind=simcut"), beside("weight=3")]),
            "height" => overrides.push(beside("width=8")),
            "width" => overrides.push(beside("height=8")),
            _ => {}
        }
        let file = if key.starts_with("model") {
            "other.toml"
        } else {
            "config.toml"
        };
        let error = Config::read(&tiny.path(file), &overrides).err();
        error.map(|error| (error.to_string(), error.hint()))
    };
    for (key, inside, outside) in rows() {
        let key = &key[..];
        for value in inside {
            // Other keys may not go together with it, which is another error.
            let error = complaint(key, value);
            let refused = error.as_ref().is_some_and(|(message, _)| {
                message.starts_with(&format!("{key}: is ")) || message.starts_with("--set")
            });
            assert!(!refused, "{key} = {value}: {error:?}");
        }
        for value in outside {
            let (message, hint) = complaint(key, value).unwrap_or_else(|| {
                panic!("{key} = {value} is accepted");
            });
            assert!(
                message.starts_with(&format!("{key}: is ")),
                "{key} = {value}: {message}"
            );
            let hint = hint.unwrap_or_default();
            assert!(
                hint.starts_with("it must be "),
                "{key} = {value}: hint: {hint}"
            );
        }
    }
}
