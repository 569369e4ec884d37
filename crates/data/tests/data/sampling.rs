//! Segmentations that are drawn.

use crate::sentencepiece::tokenizer;
use crate::{corpus, strings};
use attend_data::{Sampling, Tokenizer, TokenizerConfig, TokenizerKind, Tokenizers};
use serde_json::{Value, json};
use std::collections::HashMap;

/// So small that nothing is ever left out, but merging is done by what also leaves out.
const NEVER: f64 = f64::MIN_POSITIVE;

const LINES: [&str; 18] = [
    "",
    " ",
    "a",
    "the small tree sings loudly, and the big house is over there in the garden!",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.",
    "  the\t dog\u{a0} runs ",
    "e\u{301} is not é",
    "👩‍👩‍👧‍👦 and 🇩🇪 and 👍🏽",
    "שלום עולم مرحبا",
    "敏捷的棕色狐狸跳过懒狗。",
    "zero\u{200b}width \u{feff}bom \u{ad}hyphen",
    "nul \0 and bell \u{7}",
    "<s> </s> <pad> <unk> <html> a<b && c>d <0x41>",
    "</s></s>",
    "\u{10ffff}\u{e000}aa\u{10ffff}",
    "a ▁b ▁▁",
    "DOG Dog aaaaaaaaaaaaaaaaaaaa",
    ">>de<< the Writer, Writers >>de<<the dog>>fr<<",
];

pub(crate) fn dropout(dropout: f64) -> Sampling {
    Sampling {
        dropout,
        ..Default::default()
    }
}

pub(crate) fn alpha(alpha: f64) -> Sampling {
    Sampling {
        alpha,
        ..Default::default()
    }
}

fn trained(config: TokenizerConfig) -> Tokenizers {
    let config = TokenizerConfig {
        vocab_size: if config.byte_fallback { 450 } else { 200 },
        min_frequency: 1,
        ..config
    };
    Tokenizers::train(&config, &corpus(), &()).unwrap()
}

fn of_kind(kind: TokenizerKind) -> TokenizerConfig {
    TokenizerConfig {
        kind,
        ..Default::default()
    }
}

/// The JSON of a BPE tokenizer. The fields of its model are replaced by these.
pub(crate) fn bpe(
    tokens: &[&str],
    merges: Value,
    pre_tokenizer: Value,
    fields: Value,
) -> Tokenizer {
    let specials = ["</s>", "<unk>"];
    let all = specials.iter().chain(tokens).zip(0..);
    let vocab: HashMap<_, u32> = all.map(|(token, id)| (*token, id)).collect();
    let mut json = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": pre_tokenizer, "post_processor": null, "decoder": null,
        "model": {"type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
            "vocab": vocab, "merges": merges}
    });
    for (key, value) in fields.as_object().unwrap() {
        json["model"][key] = value.clone();
    }
    Tokenizer::from_json(&json.to_string()).unwrap()
}

pub(crate) fn white() -> Value {
    json!({"type": "WhitespaceSplit"})
}

/// BPE tokenizers with every feature that their models have.
fn all_bpe() -> Vec<(&'static str, Tokenizer)> {
    let plain = trained(TokenizerConfig::default());
    let lower = TokenizerConfig {
        lowercase: true,
        ..Default::default()
    };
    let bytes = TokenizerConfig {
        byte_fallback: true,
        ..Default::default()
    };
    let added = strings(&[">>de<<", "Writer", ">>fr<<"]);
    let merges = json!([
        ["t", "h"],
        ["th", "e"],
        ["a", "a"],
        ["aa", "aa"],
        ["d", "o"],
        ["do", "g"]
    ]);
    let letters = [
        "t", "h", "e", "a", "d", "o", "g", "th", "the", "aa", "aaaa", "do", "dog",
    ];
    let whole = [&letters[..], &["garden", "is", "loudly,"]].concat();
    let some_bytes = [&letters[..], &["<0xC3>", "<0xB6>", "<0xC2>"]].concat();
    let byte_merges = json!([["<0xC3>", "<0xB6>"], ["t", "h"]]);
    let byte_letters = ["t", "h", "th", "<0xC3>", "<0xB6>", "<0xC3><0xB6>", "<0x6C>"];
    let continued = [
        "t", "##h", "##e", "a", "##a", "d", "##o", "##g", "th", "the", "##og", "dog", "aa", "##aa",
        "aaaa",
    ];
    let continued_merges = json!([
        ["t", "##h"],
        ["th", "##e"],
        ["##o", "##g"],
        ["d", "##og"],
        ["##a", "##a"],
        ["a", "##a"],
        ["aa", "##aa"]
    ]);
    let ended = [
        "t", "h", "e</w>", "e", "a", "a</w>", "d", "o", "g</w>", "th", "the</w>", "do", "dog</w>",
        "aa", "aa</w>",
    ];
    let ended_merges = json!([
        ["t", "h"],
        ["th", "e</w>"],
        ["d", "o"],
        ["do", "g</w>"],
        ["a", "a"],
        ["a", "a</w>"]
    ]);
    let byte_level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
    let byte_level_letters = ["Ġ", "t", "h", "e", "Ġt", "Ġth", "Ġthe", "Ã", "¶", "Ã¶"];
    let byte_level_merges = json!([["Ġ", "t"], ["Ġt", "h"], ["Ġth", "e"], ["Ã", "¶"]]);
    let none = json!({});
    vec![
        ("trained", plain.target().clone()),
        ("lower case", trained(lower).target().clone()),
        ("bytes", trained(bytes.clone()).target().clone()),
        ("added", plain.with_added(&added).unwrap().target().clone()),
        (
            "bytes and added",
            trained(bytes).with_added(&added).unwrap().target().clone(),
        ),
        (
            "letters",
            bpe(&letters, merges.clone(), white(), none.clone()),
        ),
        (
            "no pre-tokenizer",
            bpe(&letters, merges.clone(), Value::Null, none.clone()),
        ),
        (
            "fused",
            bpe(&letters, merges.clone(), white(), json!({"fuse_unk": true})),
        ),
        (
            "whole",
            bpe(
                &whole,
                merges.clone(),
                white(),
                json!({"ignore_merges": true}),
            ),
        ),
        (
            "some bytes",
            bpe(
                &some_bytes,
                merges.clone(),
                white(),
                json!({"byte_fallback": true}),
            ),
        ),
        (
            "some bytes, fused",
            bpe(
                &some_bytes,
                merges,
                white(),
                json!({"byte_fallback": true, "fuse_unk": true}),
            ),
        ),
        (
            "merged bytes",
            bpe(
                &byte_letters,
                byte_merges,
                white(),
                json!({"byte_fallback": true}),
            ),
        ),
        (
            "prefix",
            bpe(
                &continued,
                continued_merges,
                white(),
                json!({"continuing_subword_prefix": "##"}),
            ),
        ),
        (
            "suffix",
            bpe(
                &ended,
                ended_merges,
                white(),
                json!({"end_of_word_suffix": "</w>"}),
            ),
        ),
        (
            "byte level",
            bpe(&byte_level_letters, byte_level_merges, byte_level, none),
        ),
    ]
}

fn all_lines() -> Vec<String> {
    let corpus = corpus();
    [
        corpus.source,
        corpus.target,
        strings(&LINES),
        vec!["the dogaa ".repeat(500), "a".repeat(5000)],
    ]
    .concat()
}

#[test]
fn bpe_without_dropout_gives_the_ids_of_encode() {
    for (name, tokenizer) in all_bpe() {
        tokenizer.check_sampling(&dropout(0.1)).unwrap();
        for line in all_lines() {
            let expected = tokenizer.encode(&line).unwrap();
            for sampling in [dropout(0.0), dropout(NEVER)] {
                let ids = tokenizer.encode_sampled(&line, &sampling, 7).unwrap();
                assert_eq!(ids, expected, "{name} {line:?}");
            }
        }
    }
    let spm = tokenizer("bpe_bytes");
    for line in all_lines() {
        let ids = spm.encode_sampled(&line, &dropout(NEVER), 7).unwrap();
        assert_eq!(ids, spm.encode(&line).unwrap(), "{line:?}");
    }
}

#[test]
fn bpe_with_all_merges_left_out_gives_characters() {
    let tokenizers = trained(TokenizerConfig::default());
    for tokenizer in [tokenizers.target(), &tokenizer("bpe_bytes")] {
        let ids = tokenizer
            .encode_sampled("the dog", &dropout(1.0), 3)
            .unwrap();
        let tokens: Vec<_> = ids.iter().map(|id| tokenizer.token(*id).unwrap()).collect();
        assert_eq!(tokens, ["▁", "t", "h", "e", "▁", "d", "o", "g", "</s>"]);
    }
}

#[test]
fn a_high_alpha_gives_the_best_segmentation() {
    let joint = trained(of_kind(TokenizerKind::Unigram));
    let more = joint.with_added(&strings(&["Writer", ">>de<<"])).unwrap();
    let all = [
        joint.target(),
        more.target(),
        &tokenizer("unigram"),
        &tokenizer("unigram_nmt_nfkc"),
    ];
    for tokenizer in all {
        let (mut same, mut total) = (0, 0);
        for line in all_lines() {
            let expected = tokenizer.encode(&line).unwrap();
            let ids = tokenizer.encode_sampled(&line, &alpha(1e6), 7).unwrap();
            // Only where two segmentations are equally good can another one be drawn.
            assert_eq!(
                tokenizer.decode(&ids).unwrap(),
                tokenizer.decode(&expected).unwrap()
            );
            total += 1;
            same += usize::from(ids == expected);
        }
        assert!(same * 100 >= total * 95, "{same} of {total}");
    }
}

#[test]
fn a_draw_gives_the_same_ids_again_and_the_same_text() {
    let unigram = trained(of_kind(TokenizerKind::Unigram));
    let mut all: Vec<_> = all_bpe()
        .into_iter()
        .map(|(name, t)| (name, t, dropout(0.3)))
        .take(5)
        .collect();
    all.push(("unigram", unigram.target().clone(), alpha(0.2)));
    all.push(("SentencePiece bpe", tokenizer("bpe_bytes"), dropout(0.3)));
    all.push(("SentencePiece unigram", tokenizer("unigram"), alpha(0.2)));
    for (name, tokenizer, sampling) in all {
        let mut different = 0;
        for line in all_lines() {
            let plain = tokenizer.encode(&line).unwrap();
            for draw in 0..4 {
                let ids = tokenizer.encode_sampled(&line, &sampling, draw).unwrap();
                assert_eq!(
                    tokenizer.encode_sampled(&line, &sampling, draw).unwrap(),
                    ids
                );
                assert_eq!(ids.last(), Some(&tokenizer.eos()));
                assert!(!ids[..ids.len() - 1].contains(&tokenizer.eos()));
                different += usize::from(ids != plain);
                if !plain.contains(&tokenizer.unk()) {
                    let text = tokenizer.decode(&ids).unwrap();
                    assert_eq!(text, tokenizer.decode(&plain).unwrap(), "{name} {line:?}");
                }
            }
        }
        assert!(different > 100, "{name}: {different}");
    }
}

#[test]
fn added_words_and_tags_stay_whole_in_bpe() {
    let tokenizers = trained(TokenizerConfig::default());
    let more = tokenizers
        .with_added(&strings(&[">>de<<", "Writer"]))
        .unwrap();
    let (old, new) = (tokenizers.target(), more.target());
    for draw in 0..50 {
        let ids = new
            .encode_sampled(">>de<< the Writer.", &dropout(0.9), draw)
            .unwrap();
        assert_eq!(ids[0], old.pad());
        assert!(ids.contains(&(old.pad() + 1)));
        assert_eq!(new.decode(&ids).unwrap(), ">>de<< the Writer.");
    }
}

#[test]
fn what_a_tokenizer_cannot_draw_is_refused_with_the_key() {
    let kind = |kind| trained(of_kind(kind)).target().clone();
    let [by_dropout, by_alpha] = [
        "data.augment.subword_dropout: ",
        "data.augment.subword_alpha: ",
    ];
    for (tokenizer, sampling, start) in [
        (kind(TokenizerKind::Bpe), alpha(0.2), by_alpha),
        (kind(TokenizerKind::Unigram), dropout(0.1), by_dropout),
        (kind(TokenizerKind::Word), dropout(0.1), by_dropout),
        (kind(TokenizerKind::Word), alpha(0.1), by_alpha),
        (kind(TokenizerKind::Char), dropout(0.1), by_dropout),
        (tokenizer("bpe_bytes"), alpha(0.2), by_alpha),
        (tokenizer("unigram"), dropout(0.2), by_dropout),
        (tokenizer("char"), dropout(0.2), by_dropout),
    ] {
        let error = tokenizer.check_sampling(&sampling).unwrap_err();
        assert!(error.to_string().starts_with(start), "{error}");
        assert!(error.hint().unwrap().starts_with("leave it out"));
        assert!(tokenizer.encode_sampled("a", &sampling, 0).is_err());
        tokenizer.check_sampling(&Sampling::default()).unwrap();
        let ids = tokenizer
            .encode_sampled("the dog", &Sampling::default(), 0)
            .unwrap();
        assert_eq!(ids, tokenizer.encode("the dog").unwrap());
    }
}
