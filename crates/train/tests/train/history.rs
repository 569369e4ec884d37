//! Every system of `configs/history`: small, but as its config says in all else.

use std::fs;
use std::path::PathBuf;

use attend_infer::{Bundle, DecodeConfig, Translator};
use attend_model::Kernels;
use candle_core::Device;

use crate::pictures::captions;
use crate::tiny::{Tiny, wait_for_step};

/// The configs with their names.
pub(crate) fn systems() -> Vec<(String, PathBuf)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../configs/history");
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut systems: Vec<_> = entries
        .map(|path| (path.file_stem().unwrap().to_string_lossy().into(), path))
        .collect();
    systems.sort();
    systems
}

/// Whether the sources of a config are pictures.
pub(crate) fn reads_pictures(config: &str) -> bool {
    config.contains("source_kind = \"pictures\"")
}

/// What makes a config small, by its family, and the corpus that is trained on.
pub(crate) fn small(config: &str) -> Vec<&'static str> {
    let model: &[&str] = if config.contains("[model.recurrent]") {
        &["model.recurrent.d_embed=16", "model.recurrent.d_hidden=16"]
    } else if config.contains("[model.snail]") {
        &[
            "model.snail.d_model=16",
            "model.snail.filters=8",
            "model.snail.d_key=8",
            "model.snail.d_value=8",
        ]
    } else if config.contains("[model.lstmn]") {
        &["model.lstmn.d_embed=16", "model.lstmn.d_hidden=16"]
    } else if config.contains("[model.caption]") {
        &[
            "model.caption.picture.height=16",
            "model.caption.picture.width=16",
            "model.caption.recurrent.d_embed=16",
            "model.caption.recurrent.d_hidden=16",
        ]
    } else {
        &["model.transformer.d_model=16", "model.transformer.d_ff=24"]
    };
    let data: &[&str] = if reads_pictures(config) {
        &[
            "data.train.path=train.tsv",
            "data.valid.path=valid.tsv",
            "data.test.path=valid.tsv",
            "data.train.header=false",
            "data.valid.header=false",
            "data.test.header=false",
            "data.batch_tokens=24",
        ]
    } else {
        &[
            "data.source=a",
            "data.target=b",
            "data.train=train",
            "data.valid=valid",
            "data.test=test",
            "data.batch_tokens=60",
        ]
    };
    let rest = [
        "data.tokenizer.vocab_size=60",
        "train.steps=14",
        "train.accumulate=2",
        "train.validate_every=7",
        "train.save_every=4",
        "train.log_every=1",
        "train.schedule.warmup=4",
        "decode.max_length=12",
    ];
    [model, data, &rest].concat()
}

#[test]
fn every_system_resumes_to_the_same_bits_after_a_kill_and_translates_greedily_and_by_beam() {
    let (text, pictures) = (Tiny::new(), captions());
    let systems = systems();
    assert!(systems.len() >= 16, "{systems:?}");
    for (name, path) in systems {
        let config = fs::read_to_string(&path).unwrap();
        let tiny = if reads_pictures(&config) {
            &pictures
        } else {
            &text
        };
        let changes = small(&config);
        let train = |out: &str, threads: &str| {
            let mut arguments = vec!["run".to_string(), path.display().to_string()];
            let out = format!("out={out}");
            for change in changes.iter().copied().chain([&*out]) {
                arguments.extend(["--set".to_string(), change.to_string()]);
            }
            arguments.extend(["--threads".to_string(), threads.to_string()]);
            arguments
        };
        let (whole, broken) = (format!("{name}-whole"), format!("{name}-broken"));
        let arguments = train(&whole, "1");
        tiny.must(&arguments.iter().map(|a| &**a).collect::<Vec<_>>());

        let arguments = train(&broken, "2");
        let arguments: Vec<&str> = arguments.iter().map(|a| &**a).collect();
        let mut child = tiny.command(&arguments).spawn().unwrap();
        wait_for_step(&mut child, &tiny.path(&broken), 6);
        child.kill().unwrap(); // SIGKILL
        child.wait().unwrap();
        let last = tiny.log(&broken).pop().unwrap().step;
        assert!(last < 14, "{name} was over before it was killed");
        tiny.must(&["resume", &broken]);
        assert!(tiny.outcome(&whole) == tiny.outcome(&broken), "{name}");
        assert_eq!(tiny.log(&whole), tiny.log(&broken), "{name}");

        let bundle = Bundle::open(&tiny.path(&whole), &Device::Cpu).unwrap();
        let lines = if reads_pictures(&config) {
            let picture = |n| {
                tiny.path(&format!("pictures/{n}.svg"))
                    .display()
                    .to_string()
            };
            [picture(1), String::new(), picture(2)]
        } else {
            [
                "one two three",
                "",
                "eight seven six five four three two one",
            ]
            .map(String::from)
        };
        for beam in [1, 4] {
            let decode = DecodeConfig {
                beam,
                ..bundle.decode.clone()
            };
            let model = &*bundle.model;
            let translator = Translator::new(model, &bundle.tokenizers, &decode, Kernels::Fused);
            let translations = translator.translate(&lines).unwrap();
            assert_eq!(translations.len(), lines.len(), "{name}");
            // A sentence alone is translated as it is among others.
            let alone = translator.translate(&lines[2..]).unwrap();
            assert_eq!(
                alone[0].text(),
                translations[2].text(),
                "{name}, beam {beam}"
            );
        }
    }
}
