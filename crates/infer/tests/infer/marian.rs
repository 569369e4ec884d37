//! Models of transformers: golden folders that it wrote, with its own translations, and damaged ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use attend_data::UNK;
use attend_infer::export::{ExportFormat, ExportOptions, export, import};
use attend_infer::{Bundle, Contents, DecodeConfig, LengthMeasure, Translator};
use attend_model::Kernels;
use candle_core::Device;
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/marian");

#[derive(Deserialize)]
struct Golden {
    /// The longest translation, without the start token.
    limit: usize,
    beam: usize,
    variants: BTreeMap<String, Vec<Case>>,
}

#[derive(Deserialize)]
struct Case {
    text: String,
    source: Vec<u32>,
    /// The text of `beam`.
    translation: String,
    greedy: Expected,
    beam: Expected,
    early: Expected,
}

#[derive(Deserialize)]
struct Expected {
    tokens: Vec<u32>,
    score: f32,
}

fn golden() -> Golden {
    let json = fs::read(Path::new(GOLDEN).join("expected.json")).unwrap();
    serde_json::from_slice(&json).unwrap()
}

/// A copy of a golden folder that can be damaged.
fn copy(variant: &str) -> (TempDir, PathBuf) {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("model");
    fs::create_dir(&folder).unwrap();
    for entry in fs::read_dir(Path::new(GOLDEN).join(variant)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
    }
    (temporary, folder)
}

/// Changes keys of a JSON file. `null` removes one.
fn edit(path: &Path, changes: &Value) {
    let mut json: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    for (key, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => json.as_object_mut().unwrap().remove(key),
            value => json
                .as_object_mut()
                .unwrap()
                .insert(key.clone(), value.clone()),
        };
    }
    fs::write(path, json.to_string()).unwrap();
}

fn weights(bundle: &Bundle) -> BTreeMap<String, (Vec<usize>, Vec<u32>)> {
    let weights = bundle.model.weights().iter();
    weights
        .map(|weight| {
            let values = weight.value().flatten_all().unwrap();
            let bits = values
                .to_vec1::<f32>()
                .unwrap()
                .into_iter()
                .map(f32::to_bits);
            (
                weight.name().to_string(),
                (weight.value().dims().to_vec(), bits.collect()),
            )
        })
        .collect()
}

#[test]
fn every_folder_translates_to_the_tokens_and_scores_of_transformers() {
    let golden = golden();
    for (variant, cases) in &golden.variants {
        let bundle = Bundle::open(&Path::new(GOLDEN).join(variant), &Device::Cpu).unwrap();
        let source = bundle.tokenizers.source().unwrap();
        let lines: Vec<&str> = cases.iter().map(|case| &*case.text).collect();
        for (beam, early_stopping) in [(1, false), (golden.beam, false), (golden.beam, true)] {
            let decode = DecodeConfig {
                beam,
                early_stopping: early_stopping.into(),
                length_penalty: 1.0,
                length_measure: LengthMeasure::Tokens,
                max_length: golden.limit,
                ..bundle.decode.clone()
            };
            let kernels = Kernels::of(&Device::Cpu);
            let translator = Translator::new(&*bundle.model, &bundle.tokenizers, &decode, kernels);
            let translations = translator.translate(&lines).unwrap();
            for (case, translation) in cases.iter().zip(translations) {
                let place = format!("{variant}, beam {beam}, {:?}", case.text);
                assert_eq!(source.encode(&case.text).unwrap(), case.source, "{place}");
                let expected = match (beam, early_stopping) {
                    (1, _) => &case.greedy,
                    (_, false) => &case.beam,
                    (_, true) => &case.early,
                };
                let found = &translation.hypotheses[0];
                assert_eq!(found.tokens, expected.tokens, "{place}");
                let difference = (found.score - expected.score).abs();
                assert!(difference < 1e-4, "{place}: {difference}");
                if beam > 1 && !early_stopping {
                    // They leave out what is unknown, too.
                    let text = found.text.replace(UNK, "");
                    assert_eq!(text, case.translation, "{place}");
                }
            }
        }
    }
}

#[test]
fn generation_settings_are_read_in_the_new_place_and_in_the_old() {
    let open = |folder: &Path| Contents::open(folder).unwrap().decode;
    let (_kept, folder) = copy("relu");
    let path = folder.join("generation_config.json");
    let settings =
        json!({"num_beams": 6, "length_penalty": 0.5, "max_length": 100, "early_stopping": true});
    edit(&path, &settings);
    let decode = open(&folder);
    assert_eq!((decode.beam, decode.max_length), (6, 99)); // without the start token
    assert!(decode.early_stopping == true.into() && decode.length_penalty == 0.5);
    assert_eq!(decode.length_measure, LengthMeasure::Tokens);
    // Where there is a new one, the old is not looked at.
    edit(&folder.join("config.json"), &json!({"num_beams": 2}));
    assert_eq!(open(&folder).beam, 6);
    fs::remove_file(path).unwrap();
    assert_eq!(open(&folder).beam, 2);
}

#[test]
fn an_imported_model_is_a_bundle_with_the_same_bits_and_the_same_files_of_its_tokenizer() {
    for variant in golden().variants.keys() {
        let source = Path::new(GOLDEN).join(variant);
        let temporary = tempfile::tempdir().unwrap();
        let place = temporary.path().join("deep/bundle");
        let imported = import(&source, &place).unwrap();
        let read = Bundle::open(&place, &Device::Cpu).unwrap();
        assert!(weights(&read) == weights(&imported), "{variant}");
        assert_eq!(read.decode, imported.decode);
        assert_eq!(read.tokenizers, imported.tokenizers);
        for name in ["source.spm", "target.spm"] {
            if source.join(name).exists() {
                let [before, after] = [&source, &place].map(|folder| fs::read(folder.join(name)));
                assert_eq!(before.unwrap(), after.unwrap());
            }
        }
        assert_eq!(fs::read_dir(place.parent().unwrap()).unwrap().count(), 1);
    }
}

#[test]
fn every_model_leaves_for_both_programs_and_comes_back_with_the_same_bits() {
    for variant in golden().variants.keys() {
        let source = Path::new(GOLDEN).join(variant);
        let before = Bundle::open(&source, &Device::Cpu).unwrap();
        for format in [ExportFormat::Hf, ExportFormat::Ctranslate2] {
            let temporary = tempfile::tempdir().unwrap();
            let place = temporary.path().join("export");
            let options = ExportOptions::default();
            let kernels = Kernels::of(&Device::Cpu);
            let exported = export(&source, format, &place, &options, kernels).unwrap();
            assert_eq!(exported.proved, 16);
            let after = Bundle::open(&place, &Device::Cpu).unwrap();
            assert!(weights(&after) == weights(&before), "{variant}, {format:?}");
            assert_eq!(after.tokenizers, before.tokenizers);
            let card = fs::read_to_string(place.join("README.md")).unwrap();
            assert!(
                card.starts_with("---\n") && card.contains("```python"),
                "{card}"
            );
        }
    }
}

#[test]
fn what_attend_does_not_compute_is_refused_by_name() {
    for (file, changes, message) in [
        (
            "config.json",
            json!({"model_type": "bart"}),
            "models of the type \"bart\"",
        ),
        (
            "config.json",
            json!({"activation_function": "gelu_new"}),
            "activation_function \"gelu_new\"",
        ),
        (
            "config.json",
            json!({"scale_embedding": false}),
            "scale_embedding = false",
        ),
        (
            "config.json",
            json!({"decoder_ffn_dim": 99}),
            "with a decoder_ffn_dim of 99",
        ),
        (
            "config.json",
            json!({"encoder_attention_heads": 1}),
            "an encoder_attention_heads of 1",
        ),
        (
            "config.json",
            json!({"decoder_start_token_id": 0}),
            "a decoder_start_token_id of 0",
        ),
        (
            "config.json",
            json!({"pad_token_id": 5, "decoder_start_token_id": 5}),
            "a pad_token_id of 5",
        ),
        (
            "config.json",
            json!({"eos_token_id": 1, "forced_eos_token_id": 1}),
            "eos_token_id",
        ),
        (
            "config.json",
            json!({"d_model": null}),
            "missing field `d_model`",
        ),
        (
            "generation_config.json",
            json!({"encoder_no_repeat_ngram_size": 3}),
            "encoder_no_repeat_ngram_size = 3",
        ),
        (
            "generation_config.json",
            json!({"do_sample": true}),
            "do_sample = true",
        ),
        (
            "generation_config.json",
            json!({"early_stopping": "always"}),
            "true, false or \"never\"",
        ),
        (
            "generation_config.json",
            json!({"repetition_penalty": 1.2, "num_beams": 4}),
            "repetition_penalty = 1.2 with num_beams above 1",
        ),
        (
            "generation_config.json",
            json!({"bad_words_ids": [[3, 4]]}),
            "bad_words_ids",
        ),
        (
            "generation_config.json",
            json!({"forced_eos_token_id": 7}),
            "a forced_eos_token_id of 7",
        ),
    ] {
        let (_kept, folder) = copy("relu");
        edit(&folder.join(file), &changes);
        let error = Contents::open(&folder).err().expect("an error").to_string();
        assert!(error.contains(message) && error.contains(file), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn every_missing_or_misshapen_tensor_is_named_and_nothing_is_written() {
    let (_kept, folder) = copy("separate");
    let path = folder.join("model.safetensors");
    let tensors = candle_core::safetensors::load(&path, &Device::Cpu).unwrap();
    let place = folder.with_file_name("bundle");
    let refused = |tensors: &std::collections::HashMap<String, candle_core::Tensor>| {
        candle_core::safetensors::save(tensors, &path).unwrap();
        let error = import(&folder, &place).err().expect("an error").to_string();
        assert!(!place.exists() && !error.contains('\n'), "{error}");
        error
    };
    for name in tensors.keys().filter(|name| *name != "final_logits_bias") {
        let mut missing = tensors.clone();
        let tensor = missing.remove(name).unwrap();
        let error = refused(&missing);
        assert!(
            error.contains(&format!("tensor `{name}` is missing")),
            "{error}"
        );
        missing.insert(
            name.clone(),
            tensor.flatten_all().unwrap().narrow(0, 0, 1).unwrap(),
        );
        let error = refused(&missing);
        assert!(
            error.contains(&format!("tensor `{name}` has shape [1]")),
            "{error}"
        );
    }
    let mut unknown = tensors.clone();
    unknown.insert("model.extra".into(), tensors["final_logits_bias"].clone());
    assert!(refused(&unknown).contains("tensor `model.extra` belongs to no weight"));
    // It is optional for transformers too.
    let mut without_bias = tensors.clone();
    without_bias.remove("final_logits_bias");
    candle_core::safetensors::save(&without_bias, &path).unwrap();
    assert!(Contents::open(&folder).is_ok());
}

#[test]
fn stored_positions_must_be_the_sinusoids_and_tied_tensors_the_same() {
    let (_kept, folder) = copy("pegasus");
    let path = folder.join("model.safetensors");
    let tensors = candle_core::safetensors::load(&path, &Device::Cpu).unwrap();
    for (name, of, message) in [
        (
            "model.encoder.embed_positions.weight",
            "model.encoder.embed_positions.weight",
            "is not the table of sinusoids",
        ),
        (
            "lm_head.weight",
            "model.shared.weight",
            "are tied, but they differ",
        ),
    ] {
        let mut changed = tensors.clone();
        let other = (&tensors[of] * 1.5).unwrap();
        changed.insert(name.into(), other);
        candle_core::safetensors::save(&changed, &path).unwrap();
        let error = Contents::open(&folder).err().expect("an error").to_string();
        assert!(error.contains(message) && error.contains(name), "{error}");
    }
}

#[test]
fn damaged_files_of_a_tokenizer_are_one_line_errors() {
    for (name, bytes) in [
        (
            "vocab.json",
            &br#"{"</s>": 0, "<unk>": 1, "a": 3, "<pad>": 4}"#[..],
        ),
        ("vocab.json", b"[]"),
        ("source.spm", b""),
        ("source.spm", b"\x0a\xff\xff\xff\xff\x7f"),
        ("target.spm", b"{}"),
    ] {
        let (_kept, folder) = copy("relu");
        fs::write(folder.join(name), bytes).unwrap();
        let error = Contents::open(&folder).err().expect("an error").to_string();
        assert!(error.contains(name) && !error.contains('\n'), "{error}");
    }
}

#[test]
fn an_export_never_replaces_files_and_leaves_nothing_behind_when_it_fails() {
    let (kept, folder) = copy("relu");
    let kernels = Kernels::of(&Device::Cpu);
    let options = ExportOptions::default();
    let taken = kept.path().join("taken");
    fs::create_dir(&taken).unwrap();
    fs::write(taken.join("mine"), "").unwrap();
    let error = export(&folder, ExportFormat::Hf, &taken, &options, kernels).unwrap_err();
    assert!(
        error.to_string().contains("exists and is not empty"),
        "{error}"
    );
    assert_eq!(fs::read_dir(&taken).unwrap().count(), 1);

    // CTranslate2 starts from a zero vector, so this model has no such export.
    let path = folder.join("model.safetensors");
    let mut tensors = candle_core::safetensors::load(&path, &Device::Cpu).unwrap();
    let shifted = (&tensors["model.shared.weight"] + 1.0).unwrap();
    tensors.insert("model.shared.weight".into(), shifted);
    candle_core::safetensors::save(&tensors, &path).unwrap();
    let place = kept.path().join("new");
    let error = export(
        &folder,
        ExportFormat::Ctranslate2,
        &place,
        &options,
        kernels,
    )
    .unwrap_err();
    assert!(error.to_string().contains("cannot be exported"), "{error}");
    let left: Vec<_> = fs::read_dir(kept.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");
}
