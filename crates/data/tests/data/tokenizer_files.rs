//! Tokenizer files of other programs, and invalid ones.

use crate::{corpus, folder, message};
use attend_data::{Error, Tokenizer, TokenizerConfig, Tokenizers};
use serde_json::{Value, json};

fn trained() -> Value {
    let corpus = corpus();
    let lines = corpus.source.iter().map(String::as_str);
    let tokenizer = Tokenizer::train(&TokenizerConfig::default(), lines).unwrap();
    serde_json::from_str(tokenizer.to_json().unwrap()).unwrap()
}

/// A word-level tokenizer with these words, and these as special tokens.
fn words(vocab: Value, specials: &[(&str, u32)]) -> Value {
    let added = specials.iter().map(|(content, id)| {
        json!({"id": id, "content": content, "single_word": false, "lstrip": false,
               "rstrip": false, "normalized": false, "special": true})
    });
    json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": added.collect::<Vec<_>>(), "normalizer": null,
        "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"}
    })
}

fn load(json: &Value) -> attend_data::Result<Tokenizer> {
    Tokenizer::from_json(&json.to_string())
}

#[test]
fn a_missing_pad_is_added_last() {
    let tokenizer = load(&words(json!({"a": 0, "</s>": 1, "<unk>": 2}), &[])).unwrap();
    assert_eq!((tokenizer.vocab_size(), tokenizer.pad()), (4, 3));
    assert_eq!((tokenizer.eos(), tokenizer.unk()), (1, 2));
    assert_eq!(tokenizer.encode("a b </s>").unwrap(), [0, 2, 2, 1]);
}

#[test]
fn a_pad_that_is_not_last_is_refused_with_the_reason() {
    let vocab = json!({"<pad>": 0, "</s>": 1, "<unk>": 2, "a": 3});
    let error = load(&words(vocab, &[])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "tokenizer JSON: <pad> is id 0 but the last id is 3"
    );
    assert!(error.hint().unwrap().contains("last row of the embedding"));
}

#[test]
fn replacements_that_would_fill_the_memory_are_refused() {
    let mut json = words(json!({"a": 0, "</s>": 1, "<unk>": 2}), &[]);
    let tens = json!({"type": "Replace", "pattern": {"Regex": "."}, "content": "a".repeat(10)});
    let steps =
        |count: usize| json!({"type": "Sequence", "normalizers": vec![tens.clone(); count]});
    json["normalizer"] = steps(2);
    assert!(load(&json).is_ok());
    json["normalizer"] = steps(12);
    let error = load(&json).unwrap_err().to_string();
    assert!(error.contains("more than 1024 times as long"), "{error}");
}

#[test]
fn missing_special_tokens_are_named_with_the_file() {
    for (vocab, token) in [
        (json!({"a": 0, "<unk>": 1}), "</s>"),
        (json!({"a": 0, "</s>": 1}), "<unk>"),
    ] {
        let json = words(vocab, &[]).to_string();
        let dir = folder(&[("t.json", json.as_bytes())]);
        let error = Tokenizer::load(dir.path().join("t.json")).unwrap_err();
        let expected = format!("t.json: the tokenizer has no {token} token");
        assert_eq!(message(&error, &dir), expected);
        assert!(error.hint().unwrap().contains(token));
    }
}

#[test]
fn other_special_tokens_are_not_in_decoded_text() {
    let vocab = json!({"a": 0, "</s>": 1, "<unk>": 2, "<s>": 3});
    let tokenizer = load(&words(vocab, &[("<s>", 3)])).unwrap();
    assert_eq!(tokenizer.decode(&[3, 0, 2, 1, 4]).unwrap(), "a <unk>");
}

#[test]
fn missing_and_duplicate_ids_are_refused() {
    let hole = load(&words(
        json!({"a": 0, "</s>": 1, "<unk>": 2, "b": 4_000_000_000u32}),
        &[],
    ));
    let message = hole.unwrap_err().to_string();
    assert!(message.contains("no token has the id 3"), "{message}");
    let twice = load(&words(json!({"a": 0, "</s>": 1, "<unk>": 2, "b": 2}), &[]));
    let message = twice.unwrap_err().to_string();
    assert!(message.contains("two tokens have the id 2"), "{message}");
}

#[test]
fn truncation_padding_and_dropout_are_turned_off() {
    let mut json = trained();
    let plain = load(&json).unwrap();
    json["truncation"] =
        json!({"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0});
    json["padding"] = json!({"strategy": {"Fixed": 50}, "direction": "Right",
        "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "</s>"});
    json["model"]["dropout"] = json!(0.5);
    json["post_processor"] = Value::Null;
    let tokenizer = load(&json).unwrap();
    let line = &corpus().source[9];
    for _ in 0..20 {
        assert_eq!(tokenizer.encode(line).unwrap(), plain.encode(line).unwrap());
    }
    assert_eq!(tokenizer.to_json(), plain.to_json());
}

#[test]
fn a_file_that_makes_the_library_panic_is_an_error() {
    let mut json = trained();
    let model = &mut json["model"];
    model["continuing_subword_prefix"] = json!("a prefix longer than any token");
    let error = load(&json).unwrap_err();
    assert!(matches!(error, Error::Tokenizer { .. }), "{error}");
    assert!(error.hint().unwrap().contains("tokenizer.json"));
}

#[test]
fn a_file_without_an_unknown_token_in_its_model_is_an_error_at_once() {
    let mut json = words(json!({"a": 0, "</s>": 1, "<unk>": 2}), &[]);
    json["model"]["unk_token"] = json!("[UNK]");
    let error = load(&json).unwrap_err().to_string();
    assert!(error.contains("not a usable tokenizer"), "{error}");
}

#[test]
fn a_file_that_is_not_a_tokenizer_is_an_error_with_its_name() {
    for bytes in [
        &b""[..],
        b"{}",
        b"null",
        b"[1, 2",
        b"\xff\xfe",
        b"{\"version\":\"1.0\"}",
    ] {
        let dir = folder(&[("t.json", bytes)]);
        let error = Tokenizer::load(dir.path().join("t.json")).unwrap_err();
        let message = message(&error, &dir);
        assert!(
            message.starts_with("t.json: not a usable tokenizer: "),
            "{message}"
        );
        assert_eq!(message.lines().count(), 1);
    }
}

#[test]
fn a_folder_without_tokenizers_is_an_error_with_the_names_that_were_tried() {
    let dir = folder(&[]);
    let error = Tokenizers::load(dir.path()).unwrap_err();
    assert_eq!(
        message(&error, &dir),
        "no such file: tokenizer.json (nor tokenizer.source.json, tokenizer.target.json, source.spm)"
    );
    let half = folder(&[("tokenizer.source.json", trained().to_string().as_bytes())]);
    let error = Tokenizers::load(half.path()).unwrap_err();
    assert_eq!(
        message(&error, &half),
        "no such file: tokenizer.target.json"
    );
}
