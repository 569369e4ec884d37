//! Training that starts from another model (`train.init`), and weights that are not trained (`train.freeze`).

use std::collections::{BTreeMap, BTreeSet};

use safetensors::SafeTensors;

use crate::tiny::Tiny;

/// A run to start from, in `base`.
fn with_base() -> Tiny {
    let tiny = Tiny::new();
    tiny.must(&[
        "run",
        "config.toml",
        "--set",
        "out=base",
        "--set",
        "train.steps=20",
    ]);
    tiny
}

/// A config that names neither a tokenizer nor a model.
fn tuning(more: &str) -> String {
    format!(
        "out = \"tuned\"\nseed = 3\n\
         [data]\nsource = \"a\"\ntarget = \"b\"\ntrain = \"train\"\nvalid = \"valid\"\nbatch_tokens = 60\n\
         [train]\ninit = \"base\"\nsteps = 12\nsave_every = 5\nvalidate_every = 0\n\
         schedule = {{ kind = \"constant\", learning_rate = 0.01, warmup = 2 }}\n{more}"
    )
}

/// The tensors of a safetensors file, by name: their shape and bytes.
fn tensors(tiny: &Tiny, name: &str) -> BTreeMap<String, (Vec<usize>, Vec<u8>)> {
    let bytes = tiny.read(name);
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let tensors = file.tensors().into_iter();
    tensors
        .map(|(name, view)| (name, (view.shape().to_vec(), view.data().to_vec())))
        .collect()
}

fn stderr(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn training_starts_from_the_weights_the_tokenizer_and_the_model_of_another_run() {
    let tiny = with_base();
    tiny.write("tuning.toml", tuning(""));
    let talk = stderr(&tiny.must(&["run", "tuning.toml"]));
    assert!(
        talk.contains("base: 69 weights taken, 0 new, 0 left out"),
        "{talk}"
    );
    assert_eq!(
        tiny.read("tuned/checkpoint-0/model.safetensors"),
        tiny.read("base/best/model.safetensors")
    );
    assert_eq!(
        tiny.read("tuned/last/tokenizer.json"),
        tiny.read("base/best/tokenizer.json")
    );
    assert_ne!(
        tiny.read("tuned/last/model.safetensors"),
        tiny.read("base/best/model.safetensors")
    );
    let config = String::from_utf8(tiny.read("tuned/config.toml")).unwrap();
    for line in ["d_model = 16", "dropout = 0.1", "init = \"base\""] {
        assert!(config.contains(line), "{line}: {config}");
    }
    // What it started from is not needed any more.
    std::fs::remove_dir_all(tiny.path("base")).unwrap();
    tiny.must(&["resume", "tuned", "--set", "train.steps=13"]);
}

#[test]
fn keys_that_are_written_win_and_what_does_not_fit_is_accounted_for() {
    let tiny = with_base();
    let model =
        "[model.transformer]\ndecoder_layers = 1\nencoder_layers = 2\nd_ff = 32\ndropout = 0.25\n";
    tiny.write("tuning.toml", tuning(model));
    let talk = stderr(&tiny.must(&["run", "tuning.toml"]));
    // The encoder's second layer is new (16), and so are the feed-forward weights of the other two layers, but for
    // the outer biases (3 each); the base's decoder has a second layer (26).
    assert!(
        talk.contains("base: 37 weights taken, 22 new, 32 left out"),
        "{talk}"
    );
    assert!(
        talk.contains("new: model.decoder.layers.*.fc1.bias, "),
        "{talk}"
    );
    let config = String::from_utf8(tiny.read("tuned/config.toml")).unwrap();
    assert!(
        config.contains("dropout = 0.25") && config.contains("d_model = 16"),
        "{config}"
    );

    let said = "other than there: model.transformer.dropout: 0.1 → 0.25";
    assert!(talk.contains(said), "{talk}");

    tiny.write("other.toml", tuning("[model.recurrent]\ncell = \"gru\"\n"));
    let talk = stderr(&tiny.train(&["run", "other.toml", "--set", "out=other"]));
    assert!(
        talk.contains("no weight of base has the name and shape"),
        "{talk}"
    );
    assert!(!tiny.path("other").exists());
}

#[test]
fn new_tokens_get_new_rows_and_leave_all_others_as_they_were() {
    let tiny = with_base();
    let tags = "[data.tokenizer]\nadd_tokens = [\">>b<<\", \"neun\"]\n";
    tiny.write("tuning.toml", tuning(tags));
    let talk = stderr(&tiny.must(&["run", "tuning.toml", "--set", "train.steps=1"]));
    assert!(
        talk.contains("with new rows for new tokens: model.shared.weight"),
        "{talk}"
    );
    let before = tensors(&tiny, "base/best/model.safetensors");
    let after = tensors(&tiny, "tuned/checkpoint-0/model.safetensors");
    for (name, (shape, bytes)) in &before {
        let (new_shape, new_bytes) = &after[name];
        if name != "model.shared.weight" {
            assert_eq!((shape, bytes), (new_shape, new_bytes), "{name}");
            continue;
        }
        assert_eq!(new_shape[0], shape[0] + 2);
        let row = bytes.len() / shape[0];
        let words = bytes.len() - row;
        assert_eq!(new_bytes[..words], bytes[..words]);
        let (new_rows, padding) = new_bytes[words..].split_at(2 * row);
        assert!(new_rows.iter().any(|&byte| byte != 0));
        assert_eq!(padding, &bytes[words..]);
    }
}

#[test]
fn only_what_is_not_frozen_changes_and_it_alone_has_moments() {
    let tiny = with_base();
    let trained = "model.decoder.layers.1.encoder_attn.q_proj.weight";
    let names = tensors(&tiny, "base/best/model.safetensors");
    let all_but_one: Vec<String> = names
        .keys()
        .filter(|name| *name != trained)
        .map(|name| format!("{name:?}"))
        .collect();
    tiny.write(
        "tuning.toml",
        tuning(&format!("freeze = [{}]\n", all_but_one.join(", "))),
    );
    tiny.must(&["run", "tuning.toml", "--set", "train.moving_average=0.9"]);
    let after = tensors(&tiny, "tuned/last/model.safetensors");
    let changed: Vec<&String> = names
        .keys()
        .filter(|name| names[*name] != after[*name])
        .collect();
    assert_eq!(changed, [trained]);
    let state = tensors(&tiny, "tuned/last/optimizer.safetensors");
    let state: BTreeSet<String> = state.into_keys().collect();
    let expected = ["m", "v", "raw"].map(|kind| format!("{kind}.{trained}"));
    assert_eq!(state, BTreeSet::from(expected));
}

#[test]
fn patterns_of_no_weight_and_of_all_weights_are_refused_before_anything_is_written() {
    let tiny = with_base();
    for (freeze, message) in [
        ("encodr.*", "\"encodr.*\" is of no weight of the model"),
        ("*", "leaves no weight to train"),
    ] {
        tiny.write("tuning.toml", tuning(&format!("freeze = [\"{freeze}\"]\n")));
        let output = tiny.train(&["run", "tuning.toml"]);
        let talk = stderr(&output);
        assert!(!output.status.success() && talk.contains(message), "{talk}");
        assert!(!tiny.path("tuned").exists());
    }
}

#[test]
fn a_frozen_and_grown_model_resumes_to_the_same_bits() {
    let tiny = with_base();
    let more = "freeze = [\"encoder.*\", \"*.fc1.*\"]\nmoving_average = 0.9\n\
                [data.tokenizer]\nadd_tokens = [\"neun\"]\n";
    tiny.write("tuning.toml", tuning(more));
    tiny.must(&["run", "tuning.toml", "--set", "out=whole"]);
    tiny.must(&[
        "run",
        "tuning.toml",
        "--set",
        "out=parts",
        "--set",
        "train.steps=5",
    ]);
    tiny.must(&["resume", "parts", "--set", "train.steps=9"]);
    tiny.must(&["resume", "parts", "--set", "train.steps=12"]);
    assert!(tiny.outcome("whole") == tiny.outcome("parts"));
}

#[test]
fn weights_can_be_unfrozen_on_resuming_if_that_is_allowed() {
    let tiny = with_base();
    tiny.write("tuning.toml", tuning("freeze = [\"encoder.*\"]\n"));
    tiny.must(&["run", "tuning.toml"]);
    let all = [
        "resume",
        "tuned",
        "--set",
        "train.freeze=[]",
        "--set",
        "train.steps=14",
    ];
    let refused = stderr(&tiny.train(&all));
    assert!(refused.contains("train.freeze"), "{refused}");
    let before = tensors(&tiny, "tuned/last/model.safetensors");
    tiny.must(&[&all[..], &["--allow", "train.freeze"]].concat());
    let after = tensors(&tiny, "tuned/last/model.safetensors");
    let still = before.keys().filter(|name| before[*name] == after[*name]);
    assert_eq!(still.count(), 0);
}

#[test]
fn keys_of_a_trained_tokenizer_have_no_effect_with_init() {
    let tiny = with_base();
    tiny.write("tuning.toml", tuning("[data.tokenizer]\nvocab_size = 99\n"));
    let talk = stderr(&tiny.train(&["run", "tuning.toml"]));
    assert!(
        talk.contains("`data.tokenizer.vocab_size` has no effect here"),
        "{talk}"
    );
}
