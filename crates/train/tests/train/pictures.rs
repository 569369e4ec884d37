//! Sources that are pictures, end to end.

use serde_json::Value;

use crate::data::stdout;
use crate::errors::refuses;
use crate::tiny::Tiny;

const CONFIG: &str = r#"
out = "run"

[data]
source = "picture"
target = "en"
source_kind = "pictures"
train = { path = "train.tsv" }
valid = { path = "valid.tsv" }
batch_tokens = 24

[data.tokenizer]
kind = "word"
min_frequency = 1

[model.caption]
picture = { height = 8, width = 12 }
blocks = [{ width = 4, pool = 2 }]

[model.caption.recurrent]
encoder_layers = 0
d_embed = 8
d_hidden = 8

[train]
steps = 8
validate_every = 4
translate_sentences = 0
samples = 0
"#;

/// Twelve pictures of a square, with two captions each, and two pictures to validate on.
pub(crate) fn captions() -> Tiny {
    let tiny = Tiny::new();
    std::fs::create_dir(tiny.path("pictures")).unwrap();
    let mut corpora = [String::new(), String::new()];
    for i in 0..14 {
        let color = ["red", "green", "blue"][i % 3];
        let (x, side) = if i % 2 == 0 {
            (1, "left")
        } else {
            (7, "right")
        };
        let svg = format!(
            "<svg xmlns='http://www.w3.org/2000/svg' width='12' height='8'>\
             <rect x='{x}' y='{}' width='4' height='4' fill='{color}'/></svg>",
            i % 4
        );
        tiny.write(&format!("pictures/{i}.svg"), svg);
        let corpus = &mut corpora[usize::from(i >= 12)];
        *corpus += &format!("pictures/{i}.svg\ta {color} square on the {side}\n");
        *corpus += &format!("pictures/{i}.svg\ton the {side} is a {color} square\n");
    }
    tiny.write("train.tsv", &corpora[0]);
    tiny.write("valid.tsv", &corpora[1]);
    tiny.write("config.toml", CONFIG);
    tiny
}

#[test]
fn captions_are_checked_trained_and_resumed_to_the_same_bits() {
    let tiny = captions();
    let report = stdout(&tiny.must(&["check", "config.toml"]));
    for text in [
        "kept 24 of 24 pairs",
        "source: 24 pictures",
        "memory: about ",
    ] {
        assert!(report.contains(text), "{text} is not in {report}");
    }
    let json = stdout(&tiny.must(&["check", "config.toml", "--json"]));
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["training"][0]["source_kind"], "pictures");
    let prepared = stdout(&tiny.must(&["prepare", "config.toml"]));
    assert!(prepared.contains("24 pairs"), "{prepared}");
    tiny.must(&["run", "config.toml"]);
    assert!(tiny.path("run/best").exists());
    let verified = stdout(&tiny.must(&["verify-resume", "config.toml", "--steps", "6"]));
    assert!(verified.contains("same"), "{verified}");
}

#[test]
fn a_run_goes_on_with_the_same_pictures_only() {
    let tiny = captions();
    tiny.must(&["run", "config.toml"]);
    let picture = String::from_utf8(tiny.read("pictures/3.svg")).unwrap();
    tiny.write(
        "pictures/3.svg",
        picture.replace("rect x='7'", "rect x='2'"),
    );
    let output = tiny.train(&["resume", "run", "--set", "train.steps=10"]);
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && talk.contains("train.tsv"),
        "{talk}"
    );
}

#[test]
fn a_broken_picture_is_named_with_the_line_of_its_corpus_before_training() {
    let tiny = captions();
    let broken = |corpus: &str, line: usize| {
        let lines = String::from_utf8(tiny.read(corpus)).unwrap();
        let name = lines.lines().nth(line - 1).unwrap().split('\t').next();
        tiny.write(name.unwrap(), "<svg><g>");
        format!("{corpus}:{line}: {}: damaged SVG", name.unwrap())
    };
    let error = broken("train.tsv", 5);
    refuses(&tiny, &["run", "config.toml"], &error, "data.bad_lines");
    tiny.must(&["run", "config.toml", "--set", "data.bad_lines=skip"]);
    let report = tiny.train(&["check", "config.toml", "--set", "out=other"]);
    let report = stdout(&report);
    assert!(report.contains(&error), "{report}");
}
