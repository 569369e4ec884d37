//! Words and tags that are added to tokenizers.

use crate::sentencepiece::{model, tokenizer};
use crate::{corpus, folder, strings};
use attend_data::{EOS, Error, PAD, Tokenizer, TokenizerConfig, TokenizerKind, Tokenizers, UNK};
use serde_json::json;

/// Tokenizers of every kind that words can be added to, with the mark of a space in their tokens.
fn all() -> Vec<(&'static str, Tokenizers, &'static str)> {
    use TokenizerKind::{Bpe, Char, Unigram, Word};
    let trained = |kind| {
        let config = TokenizerConfig {
            kind,
            vocab_size: 200,
            min_frequency: 1,
            ..Default::default()
        };
        Tokenizers::train(&config, &corpus(), &()).unwrap()
    };
    let separate = Tokenizers::Separate {
        source: tokenizer("unigram"),
        target: tokenizer("bpe_bytes"),
    };
    vec![
        ("bpe", trained(Bpe), "▁"),
        ("unigram", trained(Unigram), "▁"),
        ("word", trained(Word), ""),
        ("char", trained(Char), ""),
        (
            "SentencePiece unigram",
            Tokenizers::Joint(tokenizer("unigram")),
            "▁",
        ),
        (
            "SentencePiece nfkc",
            Tokenizers::Joint(tokenizer("unigram_nmt_nfkc")),
            "▁",
        ),
        (
            "SentencePiece bpe",
            Tokenizers::Joint(tokenizer("bpe_bytes")),
            "▁",
        ),
        ("separate", separate, "▁"),
    ]
}

/// The tokenizers of both sides, before and after.
fn sides<'a>(old: &'a Tokenizers, new: &'a Tokenizers) -> [(&'a Tokenizer, &'a Tokenizer); 2] {
    [
        (old.source().unwrap(), new.source().unwrap()),
        (old.target(), new.target()),
    ]
}

#[test]
fn new_tokens_are_last_but_for_pad_and_old_ids_stay() {
    for (name, tokenizers, mark) in all() {
        let more = tokenizers
            .with_added(&strings(&["Writer", ">>de<<", "Äther2"]))
            .unwrap();
        assert_eq!(more.is_joint(), tokenizers.is_joint());
        for (old, new) in sides(&tokenizers, &more) {
            assert_eq!(new.vocab_size(), old.vocab_size() + 3, "{name}");
            for id in 0..old.pad() {
                assert_eq!(new.token(id), old.token(id), "{name}");
            }
            let added = [0, 1, 2, 3].map(|i| new.token(old.pad() + i).unwrap());
            let expected = [
                format!("{mark}Writer"),
                ">>de<<".into(),
                format!("{mark}Äther2"),
                PAD.into(),
            ];
            assert_eq!(added, expected, "{name}");
            assert_eq!(new.pad(), old.pad() + 3);
            assert_eq!((new.eos(), new.unk()), (old.eos(), old.unk()));
        }
        let dir = folder(&[]);
        more.save(dir.path()).unwrap();
        assert_eq!(Tokenizers::load(dir.path()).unwrap(), more, "{name}");
    }
}

#[test]
fn a_new_word_is_one_token_wherever_it_stands() {
    for (name, tokenizers, _) in all() {
        let more = tokenizers.with_added(&strings(&["Writer"])).unwrap();
        for (old, new) in sides(&tokenizers, &more) {
            let id = old.pad();
            for line in [
                "Writer",
                "the Writer is",
                "Writer the",
                "the Writer",
                "Writer Writer",
            ] {
                let ids = new.encode(line).unwrap();
                let count = ids.iter().filter(|i| **i == id).count();
                assert_eq!(count, line.matches("Writer").count(), "{name} {line}");
                assert_eq!(ids, new.encode_batch(&[line]).unwrap()[0], "{name}");
                if name != "word" {
                    assert_eq!(new.decode(&ids).unwrap(), line, "{name}");
                }
            }
            if name != "word" {
                for line in ["the Writer.", "the Writer, and the man."] {
                    let ids = new.encode(line).unwrap();
                    assert!(ids.contains(&id), "{name}");
                    assert_eq!(new.decode(&ids).unwrap(), line, "{name}");
                }
            }
        }
    }
}

#[test]
fn other_text_is_encoded_as_before() {
    let corpus = corpus();
    let odd = [
        "",
        " ",
        "write writer",
        "a<b </s>",
        "Wr iter",
        "▁",
        "the dog 龍",
        "e\u{301}",
    ];
    for (name, tokenizers, _) in all() {
        let more = tokenizers
            .with_added(&strings(&["Writer", "C++", ">>de<<"]))
            .unwrap();
        for (old, new) in sides(&tokenizers, &more) {
            let lines = corpus
                .source
                .iter()
                .chain(&corpus.target)
                .map(String::as_str)
                .chain(odd);
            for line in lines {
                let change = |id: u32| if id == old.pad() { new.pad() } else { id };
                let ids: Vec<u32> = old.encode(line).unwrap().into_iter().map(change).collect();
                assert_eq!(new.encode(line).unwrap(), ids, "{name} {line:?}");
                assert_eq!(
                    new.decode(&ids).unwrap(),
                    old.decode(&ids).unwrap(),
                    "{name} {line:?}"
                );
            }
        }
    }
}

#[test]
fn a_new_tag_is_one_token_at_the_beginning_of_a_line() {
    for (name, tokenizers, _) in all() {
        let more = tokenizers.with_added(&strings(&[">>de<<"])).unwrap();
        for (old, new) in sides(&tokenizers, &more) {
            let expected = [&[old.pad()], &old.encode("the dog").unwrap()[..]].concat();
            // Where SentencePiece keeps white space, the space after the tag is a token.
            let dogs = ["the dog", " the dog"].map(|line| old.encode(line).unwrap());
            if new.to_json().is_some() || dogs[0] == dogs[1] {
                assert_eq!(new.encode(">>de<< the dog").unwrap(), expected, "{name}");
            }
            assert_eq!(new.encode(">>de<<the dog").unwrap(), expected, "{name}");
            assert_eq!(
                new.encode(">>de<<").unwrap(),
                [old.pad(), new.eos()],
                "{name}"
            );
        }
    }
}

#[test]
fn tokens_can_be_added_again() {
    for (name, tokenizers, _) in all() {
        assert_eq!(tokenizers.with_added(&[]).unwrap(), tokenizers, "{name}");
        let once = tokenizers
            .with_added(&strings(&[">>de<<", "Writer"]))
            .unwrap();
        let twice = once.with_added(&strings(&["Reader", ">>fr<<"])).unwrap();
        for (old, new) in sides(&tokenizers, &twice) {
            let first = old.pad();
            for (token, id) in [(">>de<<", 0), ("Writer", 1), ("Reader", 2), (">>fr<<", 3)] {
                assert_eq!(
                    new.encode(token).unwrap(),
                    [first + id, new.eos()],
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn a_token_that_cannot_be_added_is_named_with_the_reason() {
    for (name, tokenizers, _) in all() {
        for (tokens, expected) in [
            (&[""][..], "cannot add the token \"\": it is empty"),
            (&["a b"], "cannot add the token \"a b\": it has white space"),
            (&["a\u{7}"], "a control character"),
            (&["▁a"], "or ▁"),
            (
                &["Writer", "Writer"],
                "cannot add the token \"Writer\": it is given twice",
            ),
            (
                &["Writer", EOS],
                "cannot add the token \"</s>\": it is a token already",
            ),
            (&[UNK], "it is a token already"),
        ] {
            let error = tokenizers.with_added(&strings(tokens)).unwrap_err();
            assert!(error.to_string().contains(expected), "{name} {error}");
            assert!(error.hint().is_some());
        }
        let once = tokenizers.with_added(&strings(&["Writer"])).unwrap();
        let error = once.with_added(&strings(&["Writer"])).unwrap_err();
        assert!(error.to_string().contains("already"), "{name}");
    }
}

#[test]
fn a_word_that_the_tokenizer_would_change_is_refused() {
    let config = TokenizerConfig {
        lowercase: true,
        ..Default::default()
    };
    let lower = Tokenizers::train(&config, &corpus(), &()).unwrap();
    let normalised = Tokenizers::Joint(tokenizer("unigram_nmt_nfkc"));
    for (tokenizers, word) in [(lower, "Writer"), (normalised, "ﬁne")] {
        let error = tokenizers.with_added(&strings(&[word])).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("the tokenizer splits or changes it"),
            "{error}"
        );
    }
    let char = Tokenizers::Joint(tokenizer("char"));
    let error = char.with_added(&strings(&["Writer"])).unwrap_err();
    assert!(
        error.to_string().contains("a char model has no words"),
        "{error}"
    );
    assert!(char.with_added(&strings(&[">>de<<"])).is_ok());
}

#[test]
fn both_sides_of_a_shared_vocabulary_get_the_same_ids() {
    let vocab = json!({"</s>": 0, "<unk>": 1, "▁the": 2, ">>de<<": 3, "<pad>": 4}).to_string();
    let files = [
        ("source.spm", model("unigram")),
        ("target.spm", model("bpe_bytes")),
        ("vocab.json", vocab.into_bytes()),
    ];
    let files = files.each_ref().map(|(name, bytes)| (*name, &bytes[..]));
    let tokenizers = Tokenizers::load(folder(&files).path()).unwrap();
    let more = tokenizers
        .with_added(&strings(&["Writer", ">>fr<<"]))
        .unwrap();
    assert!(matches!(more, Tokenizers::Shared { .. }));
    assert_eq!(
        more.source().unwrap().encode(">>fr<< the Writer").unwrap(),
        [5, 2, 4, 0]
    );
    assert_eq!(more.target().encode("the Writer").unwrap(), [2, 4, 0]);
    let error = tokenizers.with_added(&strings(&[">>de<<"])).unwrap_err();
    assert!(matches!(error, Error::AddedToken { .. }));
}

#[test]
fn tagged_text_is_the_tag_and_the_text_in_every_trained_tokenizer() {
    use TokenizerKind::{Bpe, Char, Unigram, Word};
    let corpus = corpus();
    let odd = [
        "龍 dog",
        "a <b> c",
        "x >> y << z",
        ">>no<< dog",
        "e\u{301}",
        "",
    ]
    .map(String::from);
    let lines: Vec<&String> = corpus
        .source
        .iter()
        .chain(&corpus.target)
        .chain(&odd)
        .collect();
    for kind in [Bpe, Unigram, Word, Char] {
        for (joint, lowercase) in [(true, false), (false, false), (true, true), (false, true)] {
            let config = TokenizerConfig {
                kind,
                joint,
                lowercase,
                vocab_size: 200,
                min_frequency: 1,
                ..Default::default()
            };
            let tokenizers = Tokenizers::train(&config, &corpus, &()).unwrap();
            let more = tokenizers
                .with_added(&strings(&[">>DE<<", ">>news<<"]))
                .unwrap();
            for (old, new) in sides(&tokenizers, &more) {
                let tags = [old.pad(), old.pad() + 1];
                let mut tagged = Vec::new();
                let mut expected = Vec::new();
                for line in &lines {
                    let ids = old.encode(line).unwrap();
                    tagged.extend([format!(">>DE<< {line}"), format!(">>DE<< >>news<< {line}")]);
                    expected.extend([[&tags[..1], &ids].concat(), [&tags[..], &ids].concat()]);
                    tagged.push(line.to_string());
                    expected.push(ids);
                }
                let batch = new.encode_batch(&tagged).unwrap();
                for ((line, expected), ids) in tagged.iter().zip(expected).zip(batch) {
                    assert_eq!(new.encode(line).unwrap(), expected, "{kind:?} {line:?}");
                    assert_eq!(ids, expected, "{kind:?} {line:?}");
                }
            }
            let new = more.source().unwrap();
            let text = new.decode(&new.encode(">>DE<< the dog").unwrap()).unwrap();
            let space = if kind == Char { "" } else { " " };
            assert_eq!(text, format!(">>DE<<{space}the dog"), "{kind:?}");
        }
    }
}

#[test]
fn a_batch_with_tags_anywhere_is_encoded_like_its_lines_one_by_one() {
    let lines = [
        ">>de<<",
        ">>de<< ",
        " >>de<< the dog",
        "\t>>de<<\u{a0}>>fr<<the dog",
        ">>de<<>>de<<",
        "the >>de<< dog",
        "the dog >>fr<<",
        ">>de<< the >>fr<< dog",
        ">>>de<<",
        ">>>>de<< dog",
        ">>de<<<< dog",
        ">>de <<dog",
        ">>xx<< >>de<< dog",
        ">>de<< ▁the",
        "the Writer, >>de<< Writer.",
        ">>de<< Writers write",
        "▁",
        "",
    ];
    for (name, tokenizers, _) in all() {
        let more = tokenizers
            .with_added(&strings(&[">>de<<", "Writer", ">>fr<<"]))
            .unwrap();
        for (_, tokenizer) in sides(&tokenizers, &more) {
            for batch in [&lines[..], &lines[..5], &lines[5..]] {
                let ids = tokenizer.encode_batch(batch).unwrap();
                for (line, ids) in batch.iter().zip(ids) {
                    assert_eq!(ids, tokenizer.encode(line).unwrap(), "{name} {line:?}");
                }
            }
        }
    }
}

#[test]
fn tags_that_are_there_already_are_left_as_they_are() {
    for (name, tokenizers, _) in all() {
        let tags = strings(&[">>de<<", ">>fr<<", ">>de<<"]);
        let once = tokenizers.with_tags(&tags).unwrap();
        assert_eq!(once, tokenizers.with_added(&tags[..2]).unwrap(), "{name}");
        assert_eq!(once.with_tags(&tags).unwrap(), once, "{name}");
        assert_eq!(once.with_tags(&[]).unwrap(), once, "{name}");
        let more = once
            .with_tags(&strings(&[">>fr<<", ">>it<<", "news"]))
            .unwrap();
        let expected = once.with_added(&strings(&[">>it<<", "news"])).unwrap();
        assert_eq!(more, expected, "{name}");
        let error = once.with_tags(&strings(&["a b"])).unwrap_err();
        assert!(matches!(error, Error::AddedToken { .. }), "{name} {error}");
    }
}

#[test]
fn a_tag_that_text_is_not_encoded_as_is_refused() {
    let config = TokenizerConfig {
        kind: TokenizerKind::Char,
        ..Default::default()
    };
    let trained = Tokenizers::train(&config, &corpus(), &()).unwrap();
    let json = trained.target().to_json().unwrap();
    let mut json: serde_json::Value = serde_json::from_str(json).unwrap();
    let pad = json["model"]["vocab"].as_object().unwrap().len();
    json["model"]["vocab"][">>de<<"] = pad.into();
    json["added_tokens"].as_array_mut().unwrap().pop();
    let tokenizers = Tokenizers::Joint(Tokenizer::from_json(&json.to_string()).unwrap());
    let error = tokenizers.with_tags(&strings(&[">>de<<"])).unwrap_err();
    let expected = "it is a token already, but text is not encoded as it";
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn a_tag_may_have_any_punctuation_but_less_than() {
    let tags = strings(&[
        "[bt>", "[a]", "(b|c)", "x.*", "{2}", "^$", "\\d", "#&~-", "'\"`", "a/b@c",
    ]);
    let trained = all().into_iter().take(2);
    for (name, tokenizers, _) in trained {
        let more = tokenizers.with_tags(&tags).unwrap();
        let source = more.source().unwrap();
        for tag in &tags {
            let ids = source.encode(tag).unwrap();
            assert_eq!(ids.len(), 2, "{tag} in {name}: {ids:?}");
        }
        // Text is split around `<`, so that none looks like a special token.
        let error = tokenizers.with_tags(&strings(&["<bt>"])).unwrap_err();
        assert!(error.to_string().contains("splits"), "{error}");
    }
}
