//! The options of search: on the command line, in configs, and in the files of bundles.

use std::fs;

use attend_infer::{Bundle, Contents, DecodeConfig, Translator};
use attend_model::{AttentionChoice, AttentionConfig, Kernels};
use candle_core::Device;
use serde_json::{Value, json};

use crate::command::infer;
use crate::fixture::{Fixture, LINES, with_bundle};

const INPUT: &[u8] = b"a dog runs\nthe cat sees a small house\n";

#[test]
fn each_option_changes_what_is_found_and_no_line_is_lost() {
    let (folder, _) = with_bundle();
    let run = |options: &[&str]| {
        let args = [&["translate", "bundle", "--scores"], options].concat();
        let ran = infer(folder.path(), &args, INPUT);
        assert_eq!((ran.code, &*ran.stderr), (0, ""), "{options:?}");
        assert_eq!(ran.stdout.lines().count(), 2, "{options:?}");
        ran.stdout
    };
    let usual = run(&[]);
    for options in [
        &["--coverage-penalty", "0.5"][..],
        &["--max-length-ratio", "0"],
        &["--no-repeat-ngram", "1"],
        &["--repetition-penalty", "5"],
        &["--sample"],
        &["--sample", "--seed", "2"],
        &["--sample", "--temperature", "0.5"],
        &["--sample", "--top-k", "2"],
        &["--sample", "--top-p", "0.3"],
        &["--sample", "--min-p", "0.9"],
    ] {
        assert_ne!(run(options), usual, "{options:?}");
    }
    // These change nothing here, where every translation is cut off.
    for options in [
        &["--early-stopping", "never"][..],
        &["--min-length", "5"],
        &["--min-length-ratio", "1.5"],
    ] {
        run(options);
    }
    assert_eq!(run(&["--sample"]), run(&["--sample", "--seed", "0"]));
    assert_eq!(run(&["--sample", "--top-k", "1"]), run(&["--greedy"]));
}

#[test]
fn options_without_an_effect_or_with_a_wrong_value_are_refused() {
    let (folder, _) = with_bundle();
    for (options, message) in [
        (&["--sample", "--beam", "2"][..], "cannot be used with"),
        (&["--sample", "--greedy"], "cannot be used with"),
        (&["--top-k", "5"], "--top-k has no effect"),
        (&["--seed", "5", "--beam", "2"], "--seed has no effect"),
        (
            &["--coverage-penalty", "1", "--greedy"],
            "--coverage-penalty has no effect",
        ),
        (
            &["--sample", "--temperature", "0"],
            "decode.temperature: is 0",
        ),
        (&["--sample", "--top-p", "1.5"], "decode.top_p: is 1.5"),
        (&["--early-stopping", "maybe"], "true, false or never"),
        (
            &["--repetition-penalty", "0"],
            "decode.repetition_penalty: is 0",
        ),
    ] {
        let args = [&["translate", "bundle"], options].concat();
        let ran = infer(folder.path(), &args, INPUT);
        assert!(ran.code != 0 && ran.stdout.is_empty(), "{options:?}");
        assert!(ran.stderr.contains(message), "{options:?}: {}", ran.stderr);
    }
}

#[test]
fn evaluate_forbids_phrases_of_options_and_of_a_file() {
    let (folder, _) = with_bundle();
    let folder = folder.path();
    fs::write(folder.join("src"), INPUT).unwrap();
    let args = [
        "evaluate", "bundle", "--src", "src", "--ref", "src", "-o", "out",
    ];
    let run = |options: &[&str]| {
        let ran = infer(folder, &[&args, options].concat(), b"");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        fs::read_to_string(folder.join("out")).unwrap()
    };
    let free = run(&[]);
    let words: Vec<&str> = free.split_whitespace().collect();
    fs::write(
        folder.join("words"),
        format!("\n{}\n", words[1..].join("\n")),
    )
    .unwrap();
    let other = run(&["--forbid", words[0], "--forbid-file", "words"]);
    assert!(
        !other.split_whitespace().any(|word| words.contains(&word)),
        "{other}"
    );
    let args = [&args[..], &["--forbid-file", "none"]].concat();
    let ran = infer(folder, &args, b"");
    assert!(
        ran.code != 0 && ran.stderr.contains("none"),
        "{}",
        ran.stderr
    );
}

#[test]
fn every_option_is_kept_in_a_bundle_and_old_bundles_have_the_defaults() {
    let folder = tempfile::tempdir().unwrap();
    let mut fixture = Fixture::joint();
    fixture.decode = DecodeConfig {
        early_stopping: attend_infer::EarlyStopping::Never,
        coverage_penalty: 0.25,
        min_length: 3,
        min_length_ratio: 0.5,
        no_repeat_ngram: 4,
        repetition_penalty: 1.25,
        sampling: true,
        temperature: 0.75,
        top_k: 7,
        top_p: 0.875,
        min_p: 0.125,
        seed: u64::MAX,
        ..fixture.decode
    };
    fixture.write(folder.path());
    let path = folder.path().join("generation_config.json");
    let read = || Contents::open(folder.path()).unwrap().decode;
    assert_eq!(read(), fixture.decode);
    let mut json: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    for (key, value) in [
        ("early_stopping", json!("never")),
        ("min_length", json!(3)),
        ("no_repeat_ngram_size", json!(4)),
        ("do_sample", json!(true)),
    ] {
        assert_eq!(json[key], value);
    }
    let object = json.as_object_mut().unwrap();
    object.retain(|key, _| {
        let old = [
            "num_beams",
            "length_penalty",
            "max_new_tokens",
            "max_length_ratio",
            "batch_tokens",
        ];
        old.contains(&&**key)
    });
    fs::write(&path, json.to_string()).unwrap();
    let defaults = DecodeConfig::default();
    assert_eq!(
        read(),
        DecodeConfig {
            max_length: 30,
            ..defaults
        }
    );
}

#[test]
fn recurrent_models_have_every_option_but_coverage_without_attention() {
    for attention in [
        AttentionChoice::Some(AttentionConfig::default()),
        AttentionChoice::None,
    ] {
        let fixture = Fixture::recurrent(attention.clone());
        let run = |change: fn(&mut DecodeConfig)| {
            // So short that not all of the source is covered.
            let mut decode = DecodeConfig {
                max_length: 4,
                ..fixture.decode.clone()
            };
            change(&mut decode);
            let (model, tokenizers) = (&*fixture.model, &fixture.tokenizers);
            let translator = Translator::new(model, tokenizers, &decode, Kernels::Fused);
            translator.translate(&LINES)
        };
        assert!(run(|c| c.no_repeat_ngram = 2).is_ok());
        assert!(run(|c| c.sampling = true).is_ok());
        let covered = run(|c| c.coverage_penalty = 0.5);
        match attention {
            AttentionChoice::Some(_) => assert_ne!(covered.unwrap(), run(|_| {}).unwrap()),
            AttentionChoice::None => {
                let error = covered.unwrap_err().to_string();
                assert!(error.starts_with("decode.coverage_penalty: the model has no attention"));
            }
        }
    }
}

#[test]
fn a_bundle_with_options_translates_as_before_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut fixture = Fixture::joint();
    fixture.decode.sampling = true;
    fixture.decode.top_k = 5;
    fixture.write(folder.path());
    let bundle = Bundle::open(folder.path(), &Device::Cpu).unwrap();
    let translate = |translator: Translator| translator.with_samples(3).translate(&LINES).unwrap();
    let kernels = Kernels::Fused;
    let read = Translator::new(&*bundle.model, &bundle.tokenizers, &bundle.decode, kernels);
    let here = Translator::new(
        &*fixture.model,
        &fixture.tokenizers,
        &fixture.decode,
        kernels,
    );
    assert_eq!(translate(read), translate(here));
}
