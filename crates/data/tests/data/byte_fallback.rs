//! Characters as bytes.

use crate::{corpus, folder, strings};
use attend_data::{Tokenizer, TokenizerConfig, TokenizerKind, Tokenizers, UNK};

const RARE: [&str; 12] = [
    "👩‍👩‍👧‍👦 and 🇩🇪",
    "the 👍🏽dog👍 runs👍🏽.",
    "敏捷的棕色狐狸 jumps 跳过 dogs",
    "x敏y",
    "e\u{301}\u{10ffff}\u{e000}",
    "שלום עולם مرحبا",
    "ﬁ ﬀ½①Å",
    "nul\u{0}bell\u{7}",
    "<0x41> <0x41><0xE4><0xB8> a<0x41>b",
    "</s> <pad> <unk> <html>",
    "\u{200b}zero\u{feff}",
    "a ▁b",
];

fn config() -> TokenizerConfig {
    TokenizerConfig {
        vocab_size: 500,
        min_frequency: 1,
        byte_fallback: true,
        ..Default::default()
    }
}

fn train(config: &TokenizerConfig) -> Tokenizer {
    let corpus = corpus();
    let lines = corpus.source.iter().chain(&corpus.target);
    Tokenizer::train(config, lines.map(String::as_str)).unwrap()
}

fn is_byte(token: &str) -> bool {
    token.len() == 6 && token.starts_with("<0x")
}

#[test]
fn characters_outside_of_the_alphabet_become_bytes_and_come_back() {
    let tokenizer = train(&config());
    let loaded = Tokenizer::from_json(tokenizer.to_json().unwrap()).unwrap();
    for tokenizer in [tokenizer, loaded] {
        assert!(tokenizer.vocab_size() <= 500);
        for line in RARE {
            let ids = tokenizer.encode(line).unwrap();
            assert!(!ids.contains(&tokenizer.unk()), "{line}");
            let expected = line.replace("a ▁b", "a  b"); // a literal ▁ is a space in tokens
            assert_eq!(tokenizer.decode(&ids).unwrap(), expected, "{line}");
        }
        let batch = tokenizer.encode_batch(&RARE.repeat(3)).unwrap();
        for (line, ids) in RARE.repeat(3).iter().zip(batch) {
            assert_eq!(ids, tokenizer.encode(line).unwrap(), "{line}");
        }
        let ids = tokenizer.encode("the 敏").unwrap();
        let tokens: Vec<_> = ids.iter().map(|id| tokenizer.token(*id).unwrap()).collect();
        assert_eq!(tokens, ["▁the", "▁", "<0xE6>", "<0x95>", "<0x8F>", "</s>"]);
    }
}

#[test]
fn the_bytes_are_256_of_the_tokens_after_the_special_ones() {
    let tokenizer = train(&config());
    assert_eq!((tokenizer.eos(), tokenizer.unk()), (0, 1));
    assert_eq!(tokenizer.pad() as usize, tokenizer.vocab_size() - 1);
    assert_eq!(tokenizer.token(2).unwrap(), "<0x00>");
    assert_eq!(tokenizer.token(257).unwrap(), "<0xFF>");
    let plain = train(&TokenizerConfig {
        vocab_size: 500 - 256,
        byte_fallback: false,
        ..config()
    });
    // The other tokens are those of a tokenizer without bytes.
    assert_eq!(tokenizer.vocab_size(), plain.vocab_size() + 256);
    for id in 2..plain.vocab_size() as u32 {
        assert_eq!(tokenizer.token(id + 256), plain.token(id));
    }
}

#[test]
fn text_that_looks_like_a_byte_stays_text() {
    let tokenizer = train(&config());
    for (line, byte) in [
        ("<0x41>", "<0x41>"),
        ("a <0xE4>b", "<0xE4>"),
        ("x<0x0A>", "<0x0A>"),
    ] {
        let ids = tokenizer.encode(line).unwrap();
        let tokens: Vec<_> = ids.iter().map(|id| tokenizer.token(*id).unwrap()).collect();
        assert_eq!(tokenizer.decode(&ids).unwrap(), line);
        // Characters that are not in the alphabet are bytes, among them `<` itself.
        assert!(tokens.iter().any(|token| token == "<0x3C>"), "{tokens:?}");
        assert!(!tokens.iter().any(|token| token == byte), "{tokens:?}");
    }
    // Also if the text is made of nothing else.
    let lines = ["<0x41> <0xE4>"; 50];
    let tokenizer = Tokenizer::train(&config(), lines.into_iter()).unwrap();
    let ids = tokenizer.encode("<0x41> <0xE4>").unwrap();
    assert!(
        ids.iter()
            .all(|id| !is_byte(&tokenizer.token(*id).unwrap()))
    );
    assert_eq!(tokenizer.decode(&ids).unwrap(), "<0x41> <0xE4>");
}

#[test]
fn bytes_that_are_no_character_are_replaced_when_decoded() {
    let tokenizer = train(&config());
    let id = |token| tokenizer.id(token).unwrap();
    let ids = [id("▁the"), id("<0xE6>"), id("<0x95>"), id("▁dog")];
    assert_eq!(tokenizer.decode(&ids).unwrap(), "the\u{fffd}\u{fffd} dog");
}

#[test]
fn words_and_tags_can_be_added() {
    for lowercase in [false, true] {
        let config = TokenizerConfig {
            lowercase,
            ..config()
        };
        let tokenizers = Tokenizers::train(&config, &corpus(), &()).unwrap();
        let tokens = strings(&[">>DE<<", "writer"]);
        let more = tokenizers.with_added(&tokens).unwrap();
        let (old, new) = (tokenizers.target(), more.target());
        let line = "the 👍 dog 敏捷";
        let plain = old.encode(line).unwrap();
        assert_eq!(new.encode(line).unwrap(), plain);
        let tagged = new.encode(&format!(">>DE<< {line}")).unwrap();
        assert_eq!(tagged, [&[old.pad()], &plain[..]].concat());
        let word = new.encode("the 👍writer writer👍").unwrap();
        assert_eq!(word.iter().filter(|id| **id == old.pad() + 1).count(), 1);
        assert_eq!(new.decode(&word).unwrap(), "the 👍writer writer👍");
        let dir = folder(&[]);
        more.save(dir.path()).unwrap();
        assert_eq!(Tokenizers::load(dir.path()).unwrap(), more);
    }
}

#[test]
fn other_kinds_and_small_vocabularies_are_refused() {
    for kind in [
        TokenizerKind::Unigram,
        TokenizerKind::Word,
        TokenizerKind::Char,
    ] {
        let config = TokenizerConfig { kind, ..config() };
        let error = config.validate().unwrap_err();
        assert_eq!(
            error.to_string(),
            "data.tokenizer.byte_fallback: belongs to kind = \"bpe\""
        );
        assert!(error.hint().unwrap().contains("kind = \"bpe\""));
    }
    let small = TokenizerConfig {
        vocab_size: 259,
        ..config()
    };
    let error = Tokenizer::train(&small, ["a b"].into_iter()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "data.tokenizer.vocab_size: is 259, but with byte_fallback it must be at least 260"
    );
    assert!(error.hint().unwrap().contains("256 tokens are bytes"));
    let least = TokenizerConfig {
        vocab_size: 260,
        ..config()
    };
    let tokenizer = Tokenizer::train(&least, ["a b"].into_iter()).unwrap();
    assert_eq!(tokenizer.vocab_size(), 260);
    let ids = tokenizer.encode("a bäc").unwrap();
    assert_eq!(tokenizer.decode(&ids).unwrap(), "a bäc");
}

#[test]
fn without_the_key_unknown_characters_are_unknown() {
    let plain = train(&TokenizerConfig {
        byte_fallback: false,
        ..config()
    });
    assert!(!plain.to_json().unwrap().contains("<0x"));
    let ids = plain.encode("the 敏").unwrap();
    assert_eq!(plain.decode(&ids).unwrap(), format!("the {UNK}"));
}
