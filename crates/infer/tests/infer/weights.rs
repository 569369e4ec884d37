use std::collections::HashMap;
use std::fs;
use std::path::Path;

use attend_infer::open_weights;
use candle_core::{Device, Tensor};
use serde_json::json;

use crate::torch::{bits, expected, golden_path};

/// Writes a safetensors file with these tensors of one number, which is the length of the name.
fn write(folder: &Path, file: &str, names: &[&str]) {
    let tensors = names.iter().map(|name| {
        let tensor = Tensor::new(&[name.len() as f32], &Device::Cpu).unwrap();
        (name.to_string(), tensor)
    });
    let tensors: HashMap<_, _> = tensors.collect();
    candle_core::safetensors::save(&tensors, folder.join(file)).unwrap();
}

fn write_index(folder: &Path, file: &str, map: serde_json::Value) {
    let index = json!({"metadata": {"total_size": 8}, "weight_map": map});
    fs::write(folder.join(file), index.to_string()).unwrap();
}

fn names(folder: &Path) -> Vec<String> {
    open_weights(folder).unwrap().shapes().into_keys().collect()
}

fn message(folder: &Path) -> String {
    let error = open_weights(folder).err().expect("an error");
    let message = error.to_string();
    assert!(!message.contains('\n'), "{message}");
    assert!(error.hint().is_some(), "{message}");
    message
}

#[test]
fn the_first_of_the_known_files_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let error = message(folder);
    for name in ["model.safetensors", "pytorch_model.bin.index.json"] {
        assert!(error.contains(name), "{error}");
    }
    fs::copy(golden_path("parameter.bin"), folder.join("shard.bin")).unwrap();
    let index = json!({"tied": "shard.bin"});
    write_index(folder, "pytorch_model.bin.index.json", index);
    assert_eq!(names(folder), ["tied"]);
    fs::copy(
        golden_path("parameter.bin"),
        folder.join("pytorch_model.bin"),
    )
    .unwrap();
    assert_eq!(names(folder), ["parameter", "tied", "uint16"]);
    write(folder, "a.safetensors", &["one"]);
    let index = json!({"one": "a.safetensors"});
    write_index(folder, "model.safetensors.index.json", index);
    assert_eq!(names(folder), ["one"]);
    write(folder, "model.safetensors", &["whole"]);
    assert_eq!(names(folder), ["whole"]);
    assert!(message(&folder.join("absent")).contains("no such folder"));
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n";
    fs::write(folder.join("model.safetensors"), pointer).unwrap();
    assert!(message(folder).contains("model.safetensors: a Git LFS pointer"));
}

#[test]
fn shards_are_read_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "a.safetensors", &["one"]);
    write(folder, "b.safetensors", &["three", "unlisted"]);
    let index = json!({"one": "a.safetensors", "three": "b.safetensors"});
    write_index(folder, "model.safetensors.index.json", index);
    let mut weights = open_weights(folder).unwrap();
    assert_eq!(weights.shapes().len(), 2);
    for name in ["one", "three"] {
        let tensor = weights.read(name, &Device::Cpu).unwrap();
        assert_eq!(tensor.to_vec1::<f32>().unwrap(), [name.len() as f32]);
    }
    let error = weights.read("unlisted", &Device::Cpu).unwrap_err();
    assert!(error.to_string().contains("no tensor `unlisted`"));
}

#[test]
fn shards_of_torch_are_read_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut map = serde_json::Map::new();
    let mut all = Vec::new();
    for (shard, tensors) in [
        ("legacy.bin", "expected.safetensors"),
        ("parameter.bin", "parameter.safetensors"),
    ] {
        fs::copy(golden_path(shard), folder.join(shard)).unwrap();
        for (name, expected) in expected(tensors) {
            map.insert(name.clone(), shard.into());
            all.push((name, expected));
        }
    }
    write_index(folder, "pytorch_model.bin.index.json", map.into());
    let mut weights = open_weights(folder).unwrap();
    for (name, expected) in all {
        assert_eq!(bits(&weights.read(&name, &Device::Cpu).unwrap()), expected);
    }
}

#[test]
fn an_index_that_leads_elsewhere_or_contradicts_its_shards_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    write(folder.path(), "outside.safetensors", &["one"]);
    write(&inner, "a.safetensors", &["one", "two"]);
    write(&inner, "b.safetensors", &["two", "three"]);
    let outside = folder.path().join("outside.safetensors");
    for (map, expected) in [
        (
            json!({"one": "../outside.safetensors"}),
            "not the name of a file",
        ),
        (
            json!({"one": outside.to_str().unwrap()}),
            "not the name of a file",
        ),
        (json!({"one": "."}), "not the name of a file"),
        (json!({"one": ".."}), "not the name of a file"),
        (json!({"one": ""}), "not the name of a file"),
        (json!({"one": "./a.safetensors"}), "not the name of a file"),
        (json!({"one": "c.safetensors"}), "c.safetensors"),
        (
            json!({"three": "a.safetensors"}),
            "a.safetensors has no tensor `three`",
        ),
        (
            json!({"one": "a.safetensors", "three": "b.safetensors"}),
            "tensor `two` is in both a.safetensors and b.safetensors",
        ),
        (json!({"one": 1}), "not an index of weights"),
        (json!(["one"]), "not an index of weights"),
    ] {
        write_index(&inner, "model.safetensors.index.json", map);
        let error = message(&inner);
        assert!(error.contains(expected), "{error}");
    }
    fs::write(inner.join("model.safetensors.index.json"), "{}").unwrap();
    assert!(message(&inner).contains("weight_map"));
}

#[test]
fn integers_in_safetensors_are_listed_but_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let ids = Tensor::new(&[1i64, 2], &Device::Cpu).unwrap();
    let wide = Tensor::new(&[1f64 / 3.0], &Device::Cpu).unwrap();
    let tensors = HashMap::from([("position_ids", ids), ("wide", wide)]);
    candle_core::safetensors::save(&tensors, folder.path().join("model.safetensors")).unwrap();
    let mut weights = open_weights(folder.path()).unwrap();
    assert_eq!(weights.shapes()["position_ids"], [2]);
    let error = weights.read("position_ids", &Device::Cpu).unwrap_err();
    assert!(error.to_string().contains("`position_ids` is of type I64"));
    let wide = weights.read("wide", &Device::Cpu).unwrap();
    assert_eq!(wide.to_vec1::<f32>().unwrap(), [1f32 / 3.0]);
}
