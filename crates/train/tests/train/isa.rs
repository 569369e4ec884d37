//! Which versions of the kernels give the same bits. Each is forced in a process of its own.

use std::process::Output;

use attend_ops::Isa;

use crate::tiny::Tiny;

/// Large enough for threads to share a product, with sizes that no tile divides.
const MODELS: [(&str, &str); 2] = [
    (
        "transformer",
        "[model.transformer]\nencoder_layers = 1\ndecoder_layers = 1\nd_model = 60\nheads = 3\nd_ff = 134\n\
         dropout = 0.1\nactivation = \"gelu\"",
    ),
    (
        "recurrent",
        "[model.recurrent]\ncell = \"gru\"\nd_embed = 52\nd_hidden = 52\ndropout = 0.1\nattention = \"bahdanau\"",
    ),
];

const SMALLER: [&str; 8] = [
    "--set",
    "train.steps=25",
    "--set",
    "data.batch_tokens=400",
    "--set",
    "train.validate_every=0",
    "--threads",
    "2",
];

/// Runs `train` with a version of the kernels, or with what else the variable is set to.
fn train(tiny: &Tiny, isa: &str, arguments: &[&str]) -> Output {
    let mut command = tiny.command(arguments);
    command.env("ATTEND_ISA", isa).output().unwrap()
}

fn must(tiny: &Tiny, isa: Isa, arguments: &[&str]) -> String {
    let output = train(tiny, &isa.to_string(), arguments);
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{isa}: {talk}");
    talk
}

fn recorded(tiny: &Tiny, run: &str) -> String {
    let provenance = tiny.read(&format!("{run}/last/provenance.json"));
    let provenance: serde_json::Value = serde_json::from_slice(&provenance).unwrap();
    provenance["isa"].as_str().unwrap().to_string()
}

#[test]
fn all_versions_with_fused_multiply_add_train_to_the_same_bits() {
    let tiny = Tiny::new();
    let config = String::from_utf8(tiny.read("config.toml")).unwrap();
    let (before, rest) = config.split_once("[model.transformer]").unwrap();
    let (_, after) = rest.split_once("[train]").unwrap();
    for (name, model) in MODELS {
        tiny.write("config.toml", format!("{before}{model}\n\n[train]{after}"));
        let mut fused = Vec::new();
        for isa in Isa::available() {
            let run = format!("{name}-{isa}");
            let out = format!("out={run}");
            let arguments = [&["run", "config.toml", "--set", &out], &SMALLER[..]].concat();
            must(&tiny, isa, &arguments);
            assert_eq!(recorded(&tiny, &run), isa.to_string());
            if isa != Isa::Plain {
                fused.push((isa, tiny.outcome(&run)));
            }
        }
        for pair in fused.windows(2) {
            let [(a, first), (b, second)] = pair else {
                unreachable!("windows of two")
            };
            assert!(first == second, "{name}: {a} and {b} differ");
        }
    }
}

#[test]
fn resuming_with_another_version_warns() {
    let tiny = Tiny::new();
    let [first, .., last] = Isa::available()[..] else {
        return; // there is one version only
    };
    must(
        &tiny,
        first,
        &["run", "config.toml", "--set", "train.steps=10"],
    );
    let longer = ["resume", "run", "--set", "train.steps=12"];
    let talk = must(&tiny, first, &longer);
    assert!(!talk.contains("bits may differ"), "{talk}");
    let longer = ["resume", "run", "--set", "train.steps=14"];
    let talk = must(&tiny, last, &longer);
    let warning =
        format!("another version of the kernels ({last}, before: {first}): bits may differ");
    assert!(talk.contains(&warning), "{talk}");
}

#[test]
fn a_version_that_cannot_be_used_is_an_error_and_never_replaced() {
    let tiny = Tiny::new();
    let lacking = Isa::ALL
        .into_iter()
        .find(|isa| !Isa::available().contains(isa));
    let lacking = lacking.expect("no CPU has all of them").to_string();
    for (isa, error) in [
        (
            "avx1024",
            "ATTEND_ISA is `avx1024`, which is no version of the kernels",
        ),
        ("", "ATTEND_ISA is ``, which is no version of the kernels"),
        (
            &lacking,
            &format!("ATTEND_ISA is `{lacking}`, which this CPU cannot run"),
        ),
    ] {
        let output = train(&tiny, isa, &["run", "config.toml"]);
        let talk = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{talk}");
        assert!(talk.contains(error), "{talk}");
        assert!(
            talk.contains("hint: unset it, or set it to one of: plain"),
            "{talk}"
        );
        assert!(!tiny.path("run").exists());
    }
}
