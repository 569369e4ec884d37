//! SentencePiece models: as the library segments and decodes, with vocabularies of MarianMT, and on disk.

use crate::{corpus, folder, message};
use attend_data::{Error, FilePair, Tokenizer, TokenizerConfig, TokenizerFiles, Tokenizers};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

pub(crate) const CASES: [&str; 4] = ["unigram", "unigram_nmt_nfkc", "bpe_bytes", "char"];

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

pub(crate) fn model(case: &str) -> Vec<u8> {
    std::fs::read(golden(&format!("{case}.model"))).unwrap()
}

pub(crate) fn tokenizer(case: &str) -> Tokenizer {
    Tokenizer::from_sentencepiece(&model(case)).unwrap()
}

/// Texts with their pieces and what those are decoded to, from the library.
fn rows(case: &str) -> Vec<(String, Vec<String>, String)> {
    let json = std::fs::read(golden(&format!("{case}.json"))).unwrap();
    serde_json::from_slice(&json).unwrap()
}

/// A vocabulary of these tokens.
fn vocab(tokens: &[&str]) -> String {
    let entries = tokens
        .iter()
        .zip(0..)
        .map(|(token, id): (_, u32)| format!("{}: {id}", json!(token)));
    format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
}

fn with_vocab(case: &str, tokens: &[&str]) -> attend_data::Result<Tokenizer> {
    Tokenizer::from_sentencepiece_and_vocab(&model(case), vocab(tokens).as_bytes())
}

#[test]
fn text_is_segmented_as_the_library_does_it() {
    for case in CASES {
        let tokenizer = tokenizer(case);
        for (text, pieces, _) in rows(case) {
            assert_eq!(tokenizer.pieces(&text).unwrap(), pieces, "{case} {text:?}");
        }
    }
}

#[test]
fn text_is_decoded_as_the_library_does_it() {
    for case in CASES {
        let tokenizer = tokenizer(case);
        for (text, _, decoded) in rows(case) {
            // An unknown piece is shown by its name here, and as two question marks by the library.
            let ours = tokenizer.decode(&tokenizer.encode(&text).unwrap()).unwrap();
            let theirs = decoded.replace(" ⁇ ", "<unk>");
            assert_eq!(ours, theirs, "{case} {text:?}");
        }
    }
}

#[test]
fn a_batch_is_encoded_like_its_lines_one_by_one() {
    for case in CASES {
        let tokenizer = tokenizer(case);
        let texts: Vec<String> = rows(case).into_iter().map(|(text, ..)| text).collect();
        let batch = tokenizer.encode_batch(&texts).unwrap();
        for (text, ids) in texts.iter().zip(batch) {
            assert_eq!(ids, tokenizer.encode(text).unwrap());
            let (last, ids) = ids.split_last().unwrap();
            assert_eq!(*last, tokenizer.eos());
            assert!(
                !ids.contains(&tokenizer.eos()) && !ids.contains(&tokenizer.pad()),
                "{case} {text:?}"
            );
        }
    }
}

#[test]
fn the_vocabulary_of_a_plain_model_is_its_pieces_and_pad() {
    let tokenizer = tokenizer("unigram");
    let tokens = [0, 1, 2, 3, 4].map(|id| tokenizer.token(id).unwrap());
    assert_eq!(tokens, ["<unk>", "<s>", "</s>", "<sep>", "[user]"]);
    assert_eq!((tokenizer.vocab_size(), tokenizer.pad()), (501, 500));
    assert_eq!((tokenizer.unk(), tokenizer.eos()), (0, 2));
    assert_eq!(tokenizer.token(500).unwrap(), "<pad>");
    assert!(tokenizer.token(501).is_none() && tokenizer.to_json().is_none());
    assert_eq!(
        tokenizer.decode(&[1, 2, 3, 4, 500, 0]).unwrap(),
        "[user]<unk>"
    );
}

#[test]
fn pieces_are_looked_up_in_the_vocabulary_by_their_text() {
    let tokens = [
        "▁the", "</s>", "<unk>", "龍虎", ">>de<<", "s", "▁dog", "<pad>",
    ];
    let tokenizer = with_vocab("unigram", &tokens).unwrap();
    assert_eq!(
        (tokenizer.eos(), tokenizer.unk(), tokenizer.pad()),
        (1, 2, 7)
    );
    let ids = tokenizer.encode("the cat").unwrap(); // its pieces are in the model, but not in the vocabulary
    assert!(
        ids[0] == 0 && ids[1..ids.len() - 1].iter().all(|id| *id == 2),
        "{ids:?}"
    );
    // The model does not know the characters, but the vocabulary has them as one token.
    assert_eq!(tokenizer.encode("the龍虎").unwrap(), [0, 3, 1]);
    assert_eq!(tokenizer.encode("the虎").unwrap(), [0, 2, 1]);
    assert_eq!(
        tokenizer.decode(&[6, 5, 0, 3, 2, 1, 7]).unwrap(),
        "dogs the龍虎<unk>"
    );
}

#[test]
fn a_tag_at_the_beginning_of_a_line_is_one_token() {
    let tokens = ["</s>", "<unk>", "▁the", ">>de<<", ">>fr<<", "<pad>"];
    let tokenizer = with_vocab("unigram", &tokens).unwrap();
    assert_eq!(tokenizer.encode(">>de<< the").unwrap(), [3, 2, 0]);
    assert_eq!(tokenizer.encode(">>fr<<the").unwrap(), [4, 2, 0]);
    assert_eq!(tokenizer.encode(">>xx<< the").unwrap(), [1, 2, 0]);
    assert_eq!(tokenizer.encode(">>de<<").unwrap(), [3, 0]);
    assert_eq!(tokenizer.encode(">>de<< >>de<<").unwrap()[..2], [3, 1]);
    assert_ne!(tokenizer.encode("the >>de<<").unwrap()[1], 3);
    assert_ne!(tokenizer.encode(">>de the").unwrap()[0], 3);
    assert_eq!(tokenizer.encode("the <<").unwrap()[0], 2);
}

#[test]
fn a_missing_pad_is_added_last_and_one_elsewhere_is_refused() {
    let tokenizer = with_vocab("unigram", &["a", "<unk>", "</s>"]).unwrap();
    assert_eq!((tokenizer.vocab_size(), tokenizer.pad()), (4, 3));
    let error = with_vocab("unigram", &["<pad>", "<unk>", "</s>"]).unwrap_err();
    assert!(
        matches!(
            error,
            Error::PadNotLast {
                pad: 0,
                last: 2,
                ..
            }
        ),
        "{error}"
    );
    for token in ["</s>", "<unk>"] {
        let tokens: Vec<_> = ["a", "</s>", "<unk>"]
            .into_iter()
            .filter(|t| *t != token)
            .collect();
        let error = with_vocab("unigram", &tokens).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with(&format!("the tokenizer has no {token} token"))
        );
    }
}

#[test]
fn an_invalid_vocabulary_is_an_error_of_one_line() {
    let deep = format!("{}{}", "[".repeat(1 << 20), "]".repeat(1 << 20));
    let deeper = format!("{{\"a\": {deep}}}");
    for (json, expected) in [
        (
            r#"{"<unk>": 0, "</s>": 2}"#,
            "no token has the id 1, but there are higher ids",
        ),
        (
            r#"{"<unk>": 0, "</s>": 4000000000000}"#,
            "no token has the id 1",
        ),
        (r#"{"<unk>": 0, "</s>": 0}"#, "two tokens have the id 0"),
        (
            r#"{"<unk>": 0, "</s>": 1, "<unk>": 2}"#,
            "the token \"<unk>\" is listed twice",
        ),
        (r#"{"<unk>": 0, "</s>": -1}"#, "invalid value: integer `-1`"),
        (
            r#"{"<unk>": 0, "</s>": 1.5}"#,
            "invalid type: floating point `1.5`",
        ),
        (r#"{"<unk>": 0, "</s>": "1"}"#, "invalid type: string"),
        (
            r#"["<unk>", "</s>"]"#,
            "expected an object of tokens and their ids",
        ),
        (r#"{"<unk>": 0"#, "EOF"),
        ("", "EOF"),
        (&deep, "expected an object"),
        (&deeper, "invalid type: sequence"),
    ] {
        let error = Tokenizer::from_sentencepiece_and_vocab(&model("unigram"), json.as_bytes());
        let error = error.unwrap_err().to_string();
        assert!(
            error.starts_with("vocab.json: not a usable tokenizer: "),
            "{error}"
        );
        assert!(
            error.contains(expected) && error.lines().count() == 1,
            "{error}"
        );
    }
}

#[test]
fn a_model_that_is_cut_anywhere_is_an_error_or_a_smaller_model() {
    let whole = model("bpe_bytes");
    for end in 0..whole.len() {
        if let Err(error) = Tokenizer::from_sentencepiece(&whole[..end]) {
            assert_eq!(error.to_string().lines().count(), 1);
        }
    }
}

#[test]
fn models_of_other_kinds_are_refused_by_name() {
    let plain = model("unigram");
    // A second spec at the end is merged with the first one, and wins.
    let extended = |more: &[u8]| Tokenizer::from_sentencepiece(&[&plain, more].concat());
    let piece = |fields: &[u8]| [&[0x0a, fields.len() as u8], fields].concat();
    for (more, expected) in [
        (
            vec![0x12, 2, 3 << 3, 3],
            "of the type word are not supported",
        ),
        (vec![0x12, 2, 3 << 3, 9], "its model_type is 9"),
        (
            vec![0x12, 3, 0xc0, 1, 1],
            "treat_whitespace_as_suffix is not supported",
        ),
        (
            vec![0x12, 3, 0x98, 2, 1],
            "it has byte_fallback, but no piece <0x00>",
        ),
        (
            vec![0x2a, 3, 0x12, 1, b'x'],
            "a denormalizer is not supported",
        ),
        (
            vec![0x1a, 3, 0x12, 1, b'x'],
            "its precompiled_charsmap is damaged",
        ),
        (piece(b"\x0a\x01q\x18\x09"), "its type is 9"),
        (piece(b"\x0a\x01\xff"), "not valid UTF-8"),
        (piece(b"\x0a\x05<unk>"), "two pieces are \"<unk>\""),
        (
            piece(b"\x0a\x03new\x18\x02"),
            "2 pieces of the type unknown",
        ),
        (piece(b"\x0a\x03new\x18\x06"), "byte piece \"new\""),
        (piece(b"\x0a\x03n\0w"), "zero character"),
        (piece(b""), "is empty"),
        (piece(b"\x0a\x03new\x15\0\0\xc0\x7f"), "has the score NaN"),
        (piece(b"\x0a\x03new\x15\0\0\x80\x7f"), "has the score inf"),
        (
            vec![0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f],
            "longer than what is left",
        ),
    ] {
        let error = extended(&more).unwrap_err().to_string();
        assert!(
            error.starts_with("SentencePiece model: not a usable tokenizer: "),
            "{error}"
        );
        assert!(error.contains(expected), "{error}\n{expected}");
    }
}

fn names(tokenizers: &Tokenizers) -> Vec<&'static str> {
    tokenizers.files().iter().map(|(name, _)| *name).collect()
}

#[test]
fn the_files_of_a_marian_model_are_read_and_written_again() {
    let one = vocab(&["</s>", "<unk>", "▁the", "▁Hund", "<pad>"]);
    let two = vocab(&["</s>", "<unk>", "▁der", "<pad>"]);
    let (source, target) = (model("unigram"), model("unigram_nmt_nfkc"));
    let three = ["source.spm", "target.spm", "vocab.json"];
    let shared = folder(&[
        ("source.spm", &source),
        ("target.spm", &target),
        ("vocab.json", one.as_bytes()),
        ("tokenizer_config.json", b"{}"),
        ("tokenizer.json", b"another one, which is not read"),
    ]);
    let loaded = Tokenizers::load(shared.path()).unwrap();
    assert!(matches!(loaded, Tokenizers::Shared { .. }) && loaded.is_joint());
    assert_eq!(names(&loaded).len(), 3);
    assert!(three.iter().all(|name| names(&loaded).contains(name)));
    assert_eq!(loaded.target().encode("the").unwrap(), [2, 0]);

    let separate = folder(&[
        ("source.spm", &source),
        ("target.spm", &target),
        ("vocab.json", one.as_bytes()),
        ("target_vocab.json", two.as_bytes()),
    ]);
    let other = Tokenizers::load(separate.path()).unwrap();
    assert!(matches!(other, Tokenizers::Separate { .. }) && !other.is_joint());
    assert_eq!(
        names(&other),
        [
            "source.spm",
            "vocab.json",
            "target.spm",
            "target_vocab.json"
        ]
    );
    assert_eq!(
        (
            other.source().unwrap().vocab_size(),
            other.target().vocab_size()
        ),
        (5, 4)
    );

    let plain = tokenizer("bpe_bytes");
    for tokenizers in [
        loaded,
        other,
        Tokenizers::Joint(plain.clone()),
        Tokenizers::TargetOnly(plain),
    ] {
        let dir = folder(&[]);
        tokenizers.save(dir.path()).unwrap();
        let again = Tokenizers::load(dir.path()).unwrap();
        assert_eq!(again, tokenizers);
        assert_eq!(again.files(), tokenizers.files());
    }
}

#[test]
fn a_missing_file_of_a_marian_model_is_named() {
    let dir = folder(&[("source.spm", &model("unigram"))]);
    let error = Tokenizers::load(dir.path()).unwrap_err();
    assert_eq!(message(&error, &dir), "no such file: vocab.json");
    let tokens = vocab(&["</s>", "<unk>"]);
    std::fs::write(dir.path().join("vocab.json"), tokens).unwrap();
    let error = Tokenizers::load(dir.path()).unwrap_err();
    assert_eq!(message(&error, &dir), "no such file: target.spm");
}

#[test]
fn a_config_can_name_sentencepiece_models() {
    let dir = folder(&[
        ("a.model", &model("unigram")),
        ("b.spm", &model("bpe_bytes")),
    ]);
    let path = |name: &str| dir.path().join(name);
    let load = |file| Tokenizers::open(&file);
    let joint = load(TokenizerFiles::Joint(path("a.model"))).unwrap();
    assert_eq!(joint, Tokenizers::Joint(tokenizer("unigram")));
    assert_eq!(joint.files().len(), 3);
    let pair = |source: &str, target: &str| {
        let (source, target) = (path(source), path(target));
        TokenizerFiles::Separate(FilePair { source, target })
    };
    let separate = load(pair("a.model", "b.spm")).unwrap();
    assert!(!separate.is_joint());
    assert_eq!(separate.target(), &tokenizer("bpe_bytes"));

    Tokenizers::train(&TokenizerConfig::default(), &corpus(), &())
        .unwrap()
        .save(dir.path())
        .unwrap();
    let error = load(pair("a.model", "tokenizer.json")).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("one tokenizer.json and one SentencePiece model"),
        "{error}"
    );
    assert!(error.hint().is_some());
}

#[test]
fn json_tokenizers_can_share_a_vocabulary() {
    let both = Tokenizers::train(&TokenizerConfig::default(), &corpus(), &()).unwrap();
    let json = both.target().to_json().unwrap();
    // The same vocabulary, but the target is split at other places.
    let mut value: Value = serde_json::from_str(json).unwrap();
    value["model"]["merges"] = json!([]);
    let target = value.to_string();
    let files = [
        ("tokenizer.json", json.as_bytes()),
        ("tokenizer.target.json", target.as_bytes()),
    ];
    let dir = folder(&files);
    let shared = Tokenizers::load(dir.path()).unwrap();
    assert!(matches!(shared, Tokenizers::Shared { .. }) && shared.is_joint());
    let lengths =
        [shared.source().unwrap(), shared.target()].map(|t| t.encode("the dog").unwrap().len());
    assert!(lengths[0] < lengths[1]);
    shared.save(dir.path()).unwrap();
    assert_eq!(Tokenizers::load(dir.path()).unwrap(), shared);

    let other = Tokenizer::train(&TokenizerConfig::default(), ["x y z"].into_iter()).unwrap();
    std::fs::write(
        dir.path().join("tokenizer.target.json"),
        other.to_json().unwrap(),
    )
    .unwrap();
    let error = message(&Tokenizers::load(dir.path()).unwrap_err(), &dir);
    assert!(
        error.starts_with("tokenizer.target.json: not a usable tokenizer: id 2 is another token"),
        "{error}"
    );
}
