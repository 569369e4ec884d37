use crate::{corpus, folder, strings};
use attend_data::{
    CleanConfig, Cleaner, Dataset, EOS, Error, PAD, Tokenizer, TokenizerConfig, TokenizerFiles,
    TokenizerKind, Tokenizers, UNK,
};
use serde_json::Value;

const ALL: [TokenizerKind; 4] = [
    TokenizerKind::Bpe,
    TokenizerKind::Unigram,
    TokenizerKind::Word,
    TokenizerKind::Char,
];

const TRICKY: [&str; 14] = [
    "",
    "a",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.",
    "e\u{301} is not é", // combining and composed
    "👩‍👩‍👧‍👦 and 🇩🇪 and 👍🏽",
    "שלום עולם مرحبا",
    "敏捷的棕色狐狸跳过懒狗。",
    "zero\u{200b}width \u{feff}bom \u{ad}hyphen",
    "nul \0 and bell \u{7}",
    "<s> </s> <pad> <unk> <html> a<b && c>d",
    "</s></s>",
    "\u{10ffff}\u{e000}",
    "ﬁ ﬀ ½ ① Å",
    "don't “quote” — ‘it’…",
];

fn config(kind: TokenizerKind) -> TokenizerConfig {
    TokenizerConfig {
        kind,
        vocab_size: 400,
        min_frequency: 1,
        ..Default::default()
    }
}

fn train(config: &TokenizerConfig, lines: &[impl AsRef<str> + Sync]) -> Tokenizer {
    Tokenizer::train(config, lines.iter().map(AsRef::as_ref)).unwrap()
}

fn round_trip(tokenizer: &Tokenizer, line: &str) -> String {
    tokenizer.decode(&tokenizer.encode(line).unwrap()).unwrap()
}

#[test]
fn the_special_tokens_are_first_second_and_last() {
    for kind in ALL {
        let tokenizer = train(&config(kind), &corpus().source);
        assert_eq!((tokenizer.eos(), tokenizer.unk()), (0, 1), "{kind:?}");
        assert_eq!(tokenizer.pad() as usize, tokenizer.vocab_size() - 1);
        let tokens = [0, 1, tokenizer.pad()].map(|id| tokenizer.token(id).unwrap());
        assert_eq!(tokens, [EOS, UNK, PAD]);
        assert!(tokenizer.token(tokenizer.pad() + 1).is_none());
    }
}

#[test]
fn a_vocabulary_has_the_requested_size() {
    let lines = [corpus().source, corpus().target].concat();
    for kind in ALL {
        let config = TokenizerConfig {
            vocab_size: if kind == TokenizerKind::Char { 20 } else { 60 },
            ..config(kind)
        };
        let size = train(&config, &lines).vocab_size();
        match kind {
            TokenizerKind::Word => assert!(size <= 60),
            _ => assert_eq!(size, config.vocab_size, "{kind:?}"),
        }
    }
}

#[test]
fn training_twice_gives_the_same_bytes() {
    let lines = [corpus().source, corpus().target, strings(&TRICKY)].concat();
    for kind in [TokenizerKind::Bpe, TokenizerKind::Word, TokenizerKind::Char] {
        for vocab_size in [40, 400] {
            let config = TokenizerConfig {
                vocab_size, // 40 is too small for all characters, many of them equally rare
                ..config(kind)
            };
            let once = train(&config, &lines);
            for _ in 0..5 {
                let json = train(&config, &lines);
                assert_eq!(json.to_json(), once.to_json(), "{kind:?}");
            }
        }
    }
}

#[test]
fn bpe_keeps_text_except_for_white_space() {
    let tokenizer = train(&config(TokenizerKind::Bpe), &TRICKY);
    for line in TRICKY {
        assert_eq!(round_trip(&tokenizer, line), line);
    }
    let spaces = " \t a\u{a0}\u{a0}b \u{2028}a\u{3000}b\u{85}a ";
    assert_eq!(round_trip(&tokenizer, spaces), "a b a b a");
}

#[test]
fn unigram_keeps_text_except_for_white_space() {
    let tokenizer = train(&config(TokenizerKind::Unigram), &TRICKY);
    for line in TRICKY {
        assert_eq!(round_trip(&tokenizer, line), line);
    }
}

#[test]
fn characters_keep_text_with_all_spaces() {
    let lines = [&TRICKY[..], &[" two  spaces\tand a tab "]].concat();
    let tokenizer = train(&config(TokenizerKind::Char), &lines);
    for line in lines {
        assert_eq!(round_trip(&tokenizer, line), line);
        let ids = tokenizer.encode(line).unwrap();
        assert_eq!(ids.len(), line.chars().count() + 1);
    }
}

#[test]
fn words_are_joined_with_single_spaces() {
    let tokenizer = train(&config(TokenizerKind::Word), &["to be or not to be"]);
    assert_eq!(round_trip(&tokenizer, " to  be\tor "), "to be or");
    assert_eq!(round_trip(&tokenizer, "to swim"), "to <unk>");
}

#[test]
fn words_are_ranked_by_frequency_then_alphabet() {
    let lines = ["b a c c", "d b a e"];
    let keep = |vocab_size, min_frequency| {
        let config = TokenizerConfig {
            vocab_size,
            min_frequency,
            ..config(TokenizerKind::Word)
        };
        let tokenizer = train(&config, &lines);
        let ids = 2..tokenizer.pad();
        ids.map(|id| tokenizer.token(id).unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(keep(100, 1), ["a", "b", "c", "d", "e"]);
    assert_eq!(keep(100, 2), ["a", "b", "c"]);
    assert_eq!(keep(5, 1), ["a", "b"]);
}

#[test]
fn every_sentence_has_one_eos_at_its_end() {
    for kind in ALL {
        let tokenizer = train(&config(kind), &TRICKY);
        for line in TRICKY {
            let ids = tokenizer.encode(line).unwrap();
            let (last, rest) = ids.split_last().unwrap();
            assert_eq!(*last, tokenizer.eos());
            assert!(!rest.contains(&tokenizer.eos()), "{kind:?} {line}");
        }
        assert_eq!(tokenizer.encode("").unwrap(), [tokenizer.eos()]);
    }
}

#[test]
fn text_cannot_inject_special_tokens() {
    let attack = [
        "</s>",
        "<pad>",
        "a</s>b",
        "x <pad> y",
        "</s> </s>",
        "</S> <PAD>",
    ];
    for kind in ALL {
        for lowercase in [false, true] {
            let config = TokenizerConfig {
                lowercase,
                ..config(kind)
            };
            // Trained on little else, so that these strings would be merged first.
            let trained = train(&config, &attack.repeat(50));
            let loaded = Tokenizer::from_json(trained.to_json().unwrap()).unwrap();
            assert_eq!(trained.pad() as usize, trained.vocab_size() - 1);
            for tokenizer in [trained, loaded] {
                let batch = tokenizer.encode_batch(&attack).unwrap();
                for (line, ids) in attack.iter().zip(batch) {
                    assert_eq!(ids, tokenizer.encode(line).unwrap());
                    let text = &ids[..ids.len() - 1];
                    assert!(!text.is_empty());
                    assert!(!text.contains(&tokenizer.eos()), "{kind:?} {line}");
                    assert!(!text.contains(&tokenizer.pad()), "{kind:?} {line}");
                    if kind != TokenizerKind::Word && !lowercase {
                        assert_eq!(tokenizer.decode(&ids).unwrap(), *line, "{kind:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_word_is_the_same_tokens_beside_punctuation() {
    let lines = [
        "the house, the house. (the house) \"the house\" the house-boat",
        "or a box, an y-axis",
    ];
    let lines = lines.repeat(20);
    for kind in [TokenizerKind::Bpe, TokenizerKind::Unigram] {
        let config = TokenizerConfig {
            vocab_size: 120,
            ..config(kind)
        };
        let tokenizer = train(&config, &lines);
        let word = tokenizer.encode("house").unwrap();
        let word = &word[..word.len() - 1];
        for line in ["the house, or", "a house.", "house-boat", "house)"] {
            let ids = tokenizer.encode(line).unwrap();
            let found = ids.windows(word.len()).any(|ids| ids == word);
            assert!(found, "{kind:?} {line}");
            assert_eq!(round_trip(&tokenizer, line), line);
        }
        let joined = TokenizerConfig {
            split_punctuation: false,
            ..config.clone()
        };
        let tokenizer = train(&joined, &["house. house."].repeat(20));
        if kind == TokenizerKind::Bpe {
            assert_eq!(tokenizer.encode("house.").unwrap().len(), 2);
        }
        // Words with punctuation can be added to both.
        for config in [&config, &joined] {
            let both = Tokenizers::Joint(train(config, &lines));
            let added = both.with_added(&["x-ray".into()]).unwrap();
            let tokenizer = added.target();
            assert_eq!(tokenizer.encode("x-ray").unwrap().len(), 2, "{kind:?}");
            let ids = tokenizer.encode("the x-ray, the house.").unwrap();
            assert!(ids.contains(&tokenizer.id("▁x-ray").unwrap()), "{kind:?}");
            let again = added.with_added(&["y-ray".into()]).unwrap();
            for word in ["x-ray", "y-ray"] {
                assert_eq!(again.target().encode(word).unwrap().len(), 2, "{word}");
            }
            assert_eq!(round_trip(again.target(), "an x-ray."), "an x-ray.");
        }
    }
}

#[test]
fn decoding_skips_eos_and_pad_and_shows_unk() {
    let tokenizer = train(&config(TokenizerKind::Bpe), &corpus().source);
    let (eos, pad) = (tokenizer.eos(), tokenizer.pad());
    let mut ids = tokenizer.encode("the dog 龍").unwrap();
    ids.insert(0, eos);
    ids.extend([pad, pad, eos]);
    assert_eq!(tokenizer.decode(&ids).unwrap(), "the dog <unk>");
    assert_eq!(tokenizer.decode(&[]).unwrap(), "");
}

#[test]
fn an_id_outside_the_vocabulary_is_an_error() {
    let tokenizer = train(&config(TokenizerKind::Bpe), &corpus().source);
    let size = tokenizer.vocab_size() as u32;
    let error = tokenizer.decode(&[2, size]).unwrap_err();
    assert!(matches!(error, Error::UnknownId { id, .. } if id == size));
    assert!(
        error
            .to_string()
            .contains(&format!("the vocabulary has {size} tokens"))
    );
}

#[test]
fn a_batch_is_encoded_like_its_lines_one_by_one() {
    let corpus = corpus();
    let odd = [
        "a ▁b",
        "▁",
        "  a\t b\u{a0}",
        " ",
        "İstanbul ΑΣ",
        "dragon 龍龍 x龍",
    ];
    let mut lines: Vec<&str> = corpus.source.iter().map(String::as_str).collect();
    lines.extend(TRICKY);
    for kind in ALL {
        for lowercase in [false, true] {
            let config = TokenizerConfig {
                lowercase,
                ..config(kind)
            };
            let tokenizer = train(&config, &lines);
            for lines in [
                lines.repeat(20),
                [&lines[..], &odd[2..]].concat(),
                odd.into(),
            ] {
                let batch = tokenizer.encode_batch(&lines).unwrap();
                assert_eq!(batch.len(), lines.len());
                for (line, ids) in lines.iter().zip(batch) {
                    assert_eq!(ids, tokenizer.encode(line).unwrap(), "{kind:?} {line:?}");
                }
            }
        }
    }
}

#[test]
fn every_kind_can_convert_to_lower_case() {
    let lines = ["Das GROSSE Haus", "das große haus"];
    for kind in ALL {
        let config = TokenizerConfig {
            lowercase: true,
            ..config(kind)
        };
        let tokenizer = train(&config, &lines);
        assert_eq!(round_trip(&tokenizer, "DAS Große HAUS"), "das große haus");
    }
}

#[test]
fn the_json_tells_other_programs_to_add_eos() {
    let tokenizer = train(&config(TokenizerKind::Bpe), &corpus().source);
    let other: tokenizers::Tokenizer = tokenizer.to_json().unwrap().parse().unwrap();
    let line = "the dog sings loudly.";
    let encoding = other.encode(line, true).unwrap();
    assert_eq!(encoding.get_ids(), tokenizer.encode(line).unwrap());
    assert_eq!(other.decode(encoding.get_ids(), true).unwrap(), line);
    let json: Value = serde_json::from_str(tokenizer.to_json().unwrap()).unwrap();
    assert_eq!(json["post_processor"]["type"], "TemplateProcessing");
}

#[test]
fn saving_and_loading_change_nothing() {
    let dir = folder(&[]);
    for kind in ALL {
        let path = dir.path().join("tokenizer.json");
        let tokenizer = train(&config(kind), &TRICKY);
        std::fs::write(&path, tokenizer.to_json().unwrap()).unwrap();
        let loaded = Tokenizer::load(&path).unwrap();
        assert_eq!(loaded.to_json(), tokenizer.to_json(), "{kind:?}");
        for line in TRICKY {
            assert_eq!(
                loaded.encode(line).unwrap(),
                tokenizer.encode(line).unwrap()
            );
        }
    }
}

#[test]
fn one_tokenizer_for_both_sides_or_one_for_each() {
    let corpus = corpus();
    for joint in [true, false] {
        let config = TokenizerConfig {
            joint,
            ..config(TokenizerKind::Word)
        };
        let tokenizers = Tokenizers::train(&config, &corpus, &()).unwrap();
        assert_eq!(tokenizers.is_joint(), joint);
        let knows = |t: &Tokenizer, word| t.encode(word).unwrap()[0] != t.unk();
        let source = tokenizers.source().unwrap();
        assert!(knows(source, "the") && knows(tokenizers.target(), "der"));
        assert_eq!(knows(source, "der"), joint);

        let dir = folder(&[]);
        let run = dir.path().join("new/run");
        tokenizers.save(&run).unwrap();
        assert_eq!(run.join("tokenizer.json").exists(), joint);
        assert_eq!(run.join("tokenizer.source.json").exists(), !joint);
        assert_eq!(run.join("tokenizer.target.json").exists(), !joint);
        assert_eq!(Tokenizers::load(&run).unwrap(), tokenizers);

        let file = if joint {
            TokenizerFiles::Joint(run.join("tokenizer.json"))
        } else {
            TokenizerFiles::Separate(attend_data::FilePair {
                source: run.join("tokenizer.source.json"),
                target: run.join("tokenizer.target.json"),
            })
        };
        assert_eq!(Tokenizers::open(&file).unwrap(), tokenizers);
    }
}

#[test]
fn a_model_whose_source_is_not_text_has_a_target_tokenizer_only() {
    let target = train(&config(TokenizerKind::Bpe), &corpus().target);
    let tokenizers = Tokenizers::TargetOnly(target.clone());
    assert!(!tokenizers.is_joint() && tokenizers.source().is_none());
    assert_eq!(tokenizers.target(), &target);

    let dir = folder(&[]);
    tokenizers.save(dir.path()).unwrap();
    let names = std::fs::read_dir(dir.path()).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["tokenizer.target.json"]);
    assert_eq!(Tokenizers::load(dir.path()).unwrap(), tokenizers);

    let error = tokenizers.require_source().unwrap_err();
    assert_eq!(error.to_string(), "the source of this model is not text");
    assert!(error.hint().is_some());
    let cleaner = Cleaner::held_out(&CleanConfig::default(), usize::MAX);
    let error = Dataset::encode(&corpus(), &tokenizers, &cleaner)
        .err()
        .unwrap();
    assert!(matches!(error, Error::SourceNotText));
}

#[test]
fn a_unigram_vocabulary_too_small_for_its_characters_says_how_many_it_needs() {
    let config = TokenizerConfig {
        vocab_size: 10,
        ..config(TokenizerKind::Unigram)
    };
    let source = corpus().source;
    let error = Tokenizer::train(&config, source.iter().map(String::as_str)).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("different characters, so a unigram vocabulary needs")
    );
    assert!(error.hint().unwrap().contains("vocab_size"));
}
