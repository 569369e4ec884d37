use std::fs;
use std::path::Path;

use attend_batch::Packed;
use attend_infer::{Bundle, Error};
use attend_model::{
    AlignKind, AttentionChoice, AttentionConfig, DeviationKind, Kernels, Pass, Seq2Seq,
};
use candle_core::{DType, Device, Tensor};

use crate::fixture::{Fixture, with_bundle};

fn open(folder: &Path) -> Result<Bundle, Error> {
    Bundle::open(folder, &Device::Cpu)
}

fn message(folder: &Path) -> String {
    match open(folder) {
        Ok(_) => panic!("{} opens", folder.display()),
        Err(error) => format!("{error}\n{}", error.hint().unwrap_or_default()),
    }
}

fn logits(model: &dyn Seq2Seq) -> Vec<Vec<f32>> {
    let pass = Pass::eval(Kernels::Fused);
    let source = Packed::of_sentences([vec![3, 5, 0], vec![4, 0]]);
    let memory = model.encode(&source.into(), &pass).unwrap();
    let mut state = model.start(&memory, 1, &pass).unwrap();
    let logits = state.step(&[5, 6], None).unwrap();
    logits.to_vec2().unwrap()
}

#[test]
fn a_bundle_round_trips_through_its_files() {
    for fixture in [Fixture::joint(), Fixture::separate()] {
        let folder = tempfile::tempdir().unwrap();
        fixture.write(folder.path());
        let bundle = open(folder.path()).unwrap();
        assert_eq!(bundle.config.model, fixture.config);
        assert_eq!(bundle.config.vocabularies, fixture.vocabularies);
        assert_eq!(bundle.tokenizers, fixture.tokenizers);
        assert_eq!(bundle.decode, fixture.decode);
        assert_eq!(logits(&*bundle.model), logits(&*fixture.model));
    }
}

#[test]
fn a_bundle_from_before_the_width_of_local_p_could_be_fixed_has_its_learnt_width() {
    let deviations = [DeviationKind::Learned, DeviationKind::Fixed];
    for deviation in deviations {
        let fixture = Fixture::recurrent(AttentionChoice::Some(AttentionConfig {
            align: AlignKind::LocalP,
            window: Some(2),
            deviation: Some(deviation),
            ..AttentionConfig::default()
        }));
        let folder = tempfile::tempdir().unwrap();
        fixture.write(folder.path());
        let bundle = open(folder.path()).unwrap();
        assert_eq!(logits(&*bundle.model), logits(&*fixture.model));

        let path = folder.path().join("config.json");
        let text = fs::read_to_string(&path).unwrap();
        let mut config: serde_json::Value = serde_json::from_str(&text).unwrap();
        let attention = config.pointer_mut("/model/recurrent/attention");
        let attention = attention.unwrap().as_object_mut().unwrap();
        assert!(attention.remove("deviation").is_some(), "{text}");
        fs::write(&path, config.to_string()).unwrap();
        match deviation {
            DeviationKind::Learned => {
                let bundle = open(folder.path()).unwrap();
                assert_eq!(logits(&*bundle.model), logits(&*fixture.model));
            }
            // Not silently another model.
            DeviationKind::Fixed => {
                let message = message(folder.path());
                assert!(message.contains("align.width"), "{message}");
            }
        }
    }
}

#[test]
fn files_are_deterministic_with_tensors_sorted_by_name() {
    let files = || {
        let f = Fixture::joint();
        f.files(&f.tensors())
    };
    let written = files();
    assert_eq!(written, files());
    let (_, weights) = written
        .iter()
        .find(|(name, _)| name == "model.safetensors")
        .unwrap();
    let (_, header) = safetensors::SafeTensors::read_metadata(weights).unwrap();
    assert_eq!(header.metadata().as_ref().unwrap()["format"], "pt");
    let names = header.offset_keys();
    assert!(names.is_sorted(), "{names:?}");
    assert!(
        header
            .tensors()
            .values()
            .all(|t| t.dtype == safetensors::Dtype::F32)
    );
}

#[test]
#[cfg(unix)]
fn opening_a_run_opens_its_best_checkpoint_or_else_its_last() {
    use std::os::unix::fs::symlink;
    let (folder, bundle) = with_bundle();
    let run = folder.path().join("run");
    fs::create_dir(&run).unwrap();
    let text = message(&run);
    assert!(text.starts_with(&format!("`{}` has no checkpoint\n", run.display())));
    assert!(text.contains("train it first"), "{text}");

    fs::rename(&bundle, run.join("checkpoint-20")).unwrap();
    symlink("checkpoint-20", run.join("last")).unwrap();
    assert!(open(&run).is_ok());
    symlink("checkpoint-10", run.join("best")).unwrap();
    assert!(message(&run).contains("best` points to `checkpoint-10`, which does not exist"));
    assert!(open(&run.join("checkpoint-20")).is_ok());

    Fixture::separate().write(&run.join("checkpoint-10"));
    let best = open(&run).unwrap();
    let joint = best.config.vocabularies.joint;
    assert!(!joint, "`best` takes precedence over `last`");
}

#[test]
fn errors_name_the_missing_or_damaged_file() {
    let names = [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
    ];
    for name in names {
        let (_folder, bundle) = with_bundle();
        let path = bundle.join(name);
        let whole = fs::read(&path).unwrap();
        for damage in [0, 1, whole.len() / 2, whole.len() - 2] {
            fs::write(&path, &whole[..damage]).unwrap();
            let text = message(&bundle);
            assert!(text.contains(name), "{damage} bytes of {name}: {text}");
        }
        fs::remove_file(&path).unwrap();
        let text = message(&bundle);
        assert!(
            text.contains(&format!("no such file: {}", path.display())),
            "{text}"
        );
    }
    let text = message(Path::new("no/such/run"));
    assert!(text.starts_with("no such folder: no/such/run\n"), "{text}");
}

#[test]
fn missing_misshapen_and_unknown_tensors_are_errors() {
    let fixture = Fixture::joint();
    let folder = tempfile::tempdir().unwrap();
    let check = |tensors, expected: &str| {
        fixture.write_with(folder.path(), &tensors);
        let text = message(folder.path());
        assert!(text.contains("model.safetensors: "), "{text}");
        assert!(text.contains(expected), "{text}");
    };
    let name = "model.encoder.layers.0.fc1.weight";
    let mut tensors = fixture.tensors();
    let weight = tensors.remove(name).unwrap();
    check(tensors.clone(), &format!("tensor `{name}` is missing"));
    tensors.insert(name.into(), weight.t().unwrap());
    check(
        tensors.clone(),
        "has shape [16, 24] where the model has [24, 16]",
    );
    tensors.insert(name.into(), weight.clone());
    tensors.insert("extra".into(), weight);
    check(tensors, "tensor `extra` belongs to no weight of the model");
}

#[test]
fn half_precision_weights_are_converted_and_integer_weights_are_errors() {
    let (_folder, bundle) = with_bundle();
    let path = bundle.join("model.safetensors");
    let save = |dtype| {
        let tensors = Fixture::joint().tensors().into_iter();
        let tensors = tensors.map(|(name, tensor)| (name, tensor.to_dtype(dtype).unwrap()));
        candle_core::safetensors::save(&tensors.collect(), &path).unwrap();
    };
    save(DType::BF16);
    assert!(open(&bundle).is_ok());
    save(DType::U8);
    assert!(message(&bundle).contains("is of type U8"));
}

#[test]
fn invalid_configs_mismatched_vocabularies_and_pickles_are_errors() {
    let edit = |from: &str, to: &str| {
        let (folder, bundle) = with_bundle();
        let path = bundle.join("config.json");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(&path, text.replace(from, to)).unwrap();
        let message = message(&bundle);
        drop(folder);
        message
    };
    let text = edit("\"format\": 1", "\"format\": 2");
    assert!(text.contains("config.json: format version 2"), "{text}");
    assert!(text.contains("update this program"), "{text}");
    let text = edit("\"attend\"", "\"bert\"");
    assert!(
        text.contains("models of the type \"bert\" are not supported"),
        "{text}"
    );
    let text = edit("\"model_type\"", "\"kind\"");
    assert!(text.contains("not the config of an Attend model"), "{text}");
    let text = edit("\"heads\": 2", "\"heads\": 0");
    assert!(
        text.contains("config.json: model.transformer.heads: is 0"),
        "{text}"
    );
    let text = edit("\"heads\"", "\"haeds\"");
    assert!(
        text.contains("config.json: unknown field `haeds`"),
        "{text}"
    );
    let vocabulary = Fixture::joint().vocabularies.target;
    let text = edit(&format!("\"source\": {vocabulary}"), "\"source\": 99");
    let expected = format!("the tokenizers have {vocabulary} tokens for both sides");
    assert!(text.contains(&expected), "{text}");

    let (_folder, bundle) = with_bundle();
    fs::write(
        bundle.join("model.safetensors"),
        b"PK\x03\x04 archive/data.pkl",
    )
    .unwrap();
    assert!(message(&bundle).contains("model.safetensors: a pickle file"));
}

#[test]
#[cfg(unix)]
fn a_manifest_names_only_regular_files_of_its_own_folder() {
    let (folder, bundle) = with_bundle();
    fs::create_dir(bundle.join("inner")).unwrap();
    for path in [folder.path().join("secret"), bundle.join("inner/secret")] {
        fs::write(path, "secret").unwrap();
    }
    let absolute = folder.path().join("secret").display().to_string();
    let sha256 = attend_infer::sha256(b"secret");
    let manifest = |name: &str, bytes: u64| {
        let entry = serde_json::json!({"bytes": bytes, "sha256": sha256});
        let json = serde_json::json!({"files": {name: entry}}).to_string();
        fs::write(bundle.join("manifest.json"), json).unwrap();
        message(&bundle)
    };
    for name in [
        "../secret",
        &absolute,
        "inner/secret",
        "..",
        ".",
        "",
        "inner/",
    ] {
        let text = manifest(name, 6);
        let expected = format!("manifest.json: {name:?} is not the name of a file in this folder");
        assert!(text.contains(&expected), "{text}");
    }
    let text = manifest("inner", 6);
    assert!(text.contains("inner: not a regular file"), "{text}");
    // A pipe, which nobody writes to, is not opened; nor is a device, which never ends.
    let pipe = std::process::Command::new("mkfifo")
        .arg(bundle.join("pipe"))
        .status();
    assert!(pipe.unwrap().success());
    let text = manifest("pipe", 6);
    assert!(text.contains("pipe: not a regular file"), "{text}");
    std::os::unix::fs::symlink("/dev/zero", bundle.join("zeros")).unwrap();
    let text = manifest("zeros", 6);
    assert!(text.contains("zeros: not a regular file"), "{text}");

    fs::write(bundle.join("file"), "secret").unwrap();
    let text = manifest("file", 7);
    assert!(
        text.contains("file: 6 bytes where 7 were written"),
        "{text}"
    );
    // It must list what is read, or nothing would be verified.
    let list = |names: &[&str]| {
        let entries = names.iter().map(|name| {
            let bytes = fs::read(bundle.join(name)).unwrap();
            let sha256 = attend_infer::sha256(&bytes);
            let entry = serde_json::json!({"bytes": bytes.len(), "sha256": sha256});
            (name.to_string(), entry)
        });
        let files: serde_json::Map<_, _> = entries.collect();
        let json = serde_json::json!({ "files": files }).to_string();
        fs::write(bundle.join("manifest.json"), json).unwrap();
    };
    let all = ["config.json", "generation_config.json", "model.safetensors"];
    list(&all[..2]);
    let text = message(&bundle);
    assert!(
        text.contains("manifest.json: it does not list model.safetensors"),
        "{text}"
    );
    list(&all);
    assert!(open(&bundle).is_ok());
}

#[test]
fn a_config_that_asks_for_more_than_the_weights_is_refused_before_memory_is_taken() {
    for (from, to, expected) in [
        (
            "\"encoder_layers\": 1",
            "\"encoder_layers\": 100000",
            "model.safetensors: the model has at least 100002 tensors, but there are only ",
        ),
        (
            "\"d_model\": 16,\n      \"heads\": 2",
            "\"d_model\": 100000,\n      \"heads\": 100000",
            "model.safetensors: the model has at least 120000000000 values, but there are only ",
        ),
    ] {
        let (_folder, bundle) = with_bundle();
        let path = bundle.join("config.json");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(&path, text.replace(from, to)).unwrap();
        let text = message(&bundle);
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn translating_with_nan_weights_is_an_error() {
    let fixture = Fixture::joint();
    let folder = tempfile::tempdir().unwrap();
    let mut tensors = fixture.tensors();
    let name = "model.decoder.layers.1.fc2.bias";
    tensors.insert(
        name.into(),
        Tensor::full(f32::NAN, 16, &Device::Cpu).unwrap(),
    );
    fixture.write_with(folder.path(), &tensors);
    let bundle = open(folder.path()).unwrap();
    let (model, tokenizers) = (&*bundle.model, &bundle.tokenizers);
    for kernels in Kernels::ALL {
        let translator = attend_infer::Translator::new(model, tokenizers, &bundle.decode, kernels);
        let error = translator.translate(&["a dog"]).unwrap_err();
        assert!(matches!(error, Error::NotANumber), "{error}");
    }
}
