//! What keeps small corpora from being learnt by heart.

use attend_train::{Stop, train};

use crate::errors::refuses;
use crate::tiny::{Tiny, values};

/// A change of the config for each.
const REGULARIZERS: [&str; 5] = [
    "train.word_dropout=0.2",
    "model.transformer.layer_dropout=0.4",
    "train.consistency={ kind = \"r-drop\", weight = 5 }",
    "train.consistency={ kind = \"simcut\", weight = 3, cut_rate = 0.1 }",
    "train.consistency={ kind = \"simcut\", weight = 3, cut = \"elements\", detach = true }",
];

#[test]
fn a_training_with_each_regularizer_is_killed_and_resumes_to_the_same_bits() {
    let tiny = Tiny::new();
    for change in REGULARIZERS {
        let verify = [
            "verify-resume",
            "config.toml",
            "--steps",
            "10",
            "--stops",
            "1",
        ];
        let output = tiny.must(&[&verify[..], &["--set", change]].concat());
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(
            said.contains("the same bits: this training resumes exactly"),
            "{change}: {said}"
        );
    }
}

#[test]
fn each_regularizer_and_each_of_its_settings_changes_the_training() {
    let tiny = Tiny::new();
    let mut seen = Vec::new();
    let plain = ["train.label_smoothing=0.1"];
    let weak = ["train.consistency={ kind = \"simcut\", weight = 1, cut_rate = 0.1 }"];
    let all = plain.iter().chain(&REGULARIZERS).chain(&weak);
    for (n, change) in all.enumerate() {
        let changes = ["train.steps=2", *change];
        let mut run = tiny.start(&format!("run{n}"), &changes);
        train(&mut run, &Stop::default()).unwrap();
        let values = values(&run);
        assert!(values.iter().flatten().all(|x| x.is_finite()), "{change}");
        assert!(!seen.contains(&values), "{change} has no effect");
        seen.push(values);
    }
}

#[test]
fn what_belongs_to_simcut_is_refused_with_r_drop() {
    let tiny = Tiny::new();
    refuses(
        &tiny,
        &[
            "run",
            "config.toml",
            "--set",
            "train.consistency={ kind = \"r-drop\", weight = 5, cut_rate = 0.1 }",
        ],
        "train.consistency.cut_rate: belongs to simcut",
        "set train.consistency.kind = \"simcut\"",
    );
}
