//! Which word of a text a token belongs to. Words are what white space separates.

use std::ops::Range;

use attend_data::Tokenizer;

use crate::Result;

/// The word of each token, counted from 0; none for a token without a character of its own: `</s>`, a space, or
/// the later bytes of a character.
///
/// A tokenizer need not keep white space or letters as they were: a comma may be a token of its own and stand apart
/// when it is decoded, and what is not in the vocabulary is `<unk>`. So tokens are found in the text by their
/// characters, if decoding gives those of the text; else by their words, if these are as many; else where decoding
/// and the text differ least.
pub(crate) fn words_of_tokens(
    tokenizer: &Tokenizer,
    tokens: &[u32],
    text: &str,
) -> Result<Vec<Option<usize>>> {
    let decoded = tokenizer.decode(tokens)?;
    let [decoded_words, text_words] = [&decoded, text].map(words_of_characters);
    let [mut characters, text_characters] = [&decoded, text].map(visible);
    let spans = spans(tokenizer, tokens, characters.len())?;
    let last = text_words.len().saturating_sub(1);
    let words: Vec<usize> = if characters == text_characters {
        text_words
    } else if decoded_words.last() == text_words.last() {
        decoded_words
    } else {
        // What is unknown equals nothing.
        for (span, token) in spans.iter().zip(tokens) {
            if *token == tokenizer.unk() {
                characters[span.clone()].fill(char::REPLACEMENT_CHARACTER);
            }
        }
        let places = nearest(&characters, &text_characters);
        let word = |place: usize| text_words.get(place.min(last)).copied().unwrap_or(0);
        places.into_iter().map(word).collect()
    };
    let empty = text.trim().is_empty();
    let word = |span: Range<usize>| (!span.is_empty() && !empty).then(|| words[span.start]);
    Ok(spans.into_iter().map(word).collect())
}

/// The place in `text` of each character of `decoded`, by the fewest edits from the one to the other. In texts
/// so long that this would take much memory, by the distance from the beginning.
fn nearest(decoded: &[char], text: &[char]) -> Vec<usize> {
    const MOST: usize = 4 << 20;
    let (n, m) = (decoded.len(), text.len());
    let width = m + 1;
    if (n + 1) * width > MOST {
        return (0..n).map(|i| i * m / n).collect();
    }
    // costs[i][j]: edits between the ends of both from i and j on.
    let mut costs = vec![0u32; (n + 1) * width];
    for i in (0..=n).rev() {
        for j in (0..=m).rev() {
            costs[i * width + j] = if i == n || j == m {
                (n - i + m - j) as u32
            } else {
                let replaced = costs[(i + 1) * width + j + 1] + u32::from(decoded[i] != text[j]);
                let without = costs[(i + 1) * width + j].min(costs[i * width + j + 1]);
                replaced.min(without + 1)
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut places = Vec::with_capacity(n);
    while i < n {
        let cost = costs[i * width + j];
        if j == m {
            places.push(j.saturating_sub(1)); // belongs to what came before
            i += 1;
        } else if cost == costs[(i + 1) * width + j + 1] + u32::from(decoded[i] != text[j]) {
            places.push(j);
            (i, j) = (i + 1, j + 1);
        } else if cost == costs[(i + 1) * width + j] + 1 {
            places.push(j.saturating_sub(1));
            i += 1;
        } else {
            j += 1;
        }
    }
    places
}

/// The number of words of a text.
pub(super) fn count_words(text: &str) -> usize {
    text.split_whitespace().count()
}

fn visible(text: &str) -> Vec<char> {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The word of each character that is not white space.
fn words_of_characters(text: &str) -> Vec<usize> {
    let words = text.split_whitespace().enumerate();
    let each = words.flat_map(|(index, word)| word.chars().map(move |_| index));
    each.collect()
}

/// The visible characters that each token adds to those before it, of `all` characters. By decoding every
/// beginning of the tokens: what a token looks like can depend on those before it.
fn spans(tokenizer: &Tokenizer, tokens: &[u32], all: usize) -> Result<Vec<Range<usize>>> {
    let ends = (1..=tokens.len())
        .map(|end| -> Result<usize> { Ok(visible(&tokenizer.decode(&tokens[..end])?).len()) });
    let mut ends = ends.collect::<Result<Vec<usize>>>()?;
    // The first bytes of a character may be decoded as several signs for a broken character.
    let mut highest = all;
    for end in ends.iter_mut().rev() {
        highest = highest.min(*end);
        *end = highest;
    }
    let mut start = 0;
    let spans = ends
        .into_iter()
        .map(|end| std::mem::replace(&mut start, end)..end);
    Ok(spans.collect())
}

#[cfg(test)]
mod tests {
    use attend_data::{TokenizerConfig, TokenizerKind};

    use super::*;

    const LINES: [&str; 4] = [
        "a dog worked",
        "über den Fluss",
        "dog worked a day, über",
        "the dog's worked days",
    ];

    /// What each word of the text is made of, by the tokens that are said to be its own.
    fn words(tokenizer: &Tokenizer, text: &str) -> Vec<String> {
        let tokens = tokenizer.encode(text).unwrap();
        let of_tokens = words_of_tokens(tokenizer, &tokens, text).unwrap();
        assert_eq!(of_tokens.len(), tokens.len());
        assert_eq!(of_tokens.last(), Some(&None), "`</s>` is no word");
        assert!(of_tokens.iter().flatten().is_sorted());
        let mut words = vec![Vec::new(); count_words(text)];
        for (token, word) in tokens.iter().zip(of_tokens) {
            if let Some(word) = word {
                words[word].push(*token);
            }
        }
        let decode = |tokens: &Vec<u32>| tokenizer.decode(tokens).unwrap().trim().to_string();
        words.iter().map(decode).collect()
    }

    fn trained(kind: TokenizerKind) -> Tokenizer {
        let config = TokenizerConfig {
            kind,
            vocab_size: 50,
            ..TokenizerConfig::default()
        };
        Tokenizer::train(&config, LINES.into_iter()).unwrap()
    }

    #[test]
    fn the_tokens_of_a_word_decode_to_the_word_whatever_the_tokenizer() {
        let text = "dog  worked über a days";
        for kind in [
            TokenizerKind::Bpe,
            TokenizerKind::Unigram,
            TokenizerKind::Char,
        ] {
            let found = words(&trained(kind), text);
            assert_eq!(
                found,
                text.split_whitespace().collect::<Vec<_>>(),
                "{kind:?}"
            );
        }
        let found = words(&trained(TokenizerKind::Word), "dog worked a");
        assert_eq!(found, ["dog", "worked", "a"]);
    }

    #[test]
    fn characters_that_the_vocabulary_lacks_do_not_shift_the_words_after_them() {
        for kind in [TokenizerKind::Bpe, TokenizerKind::Unigram] {
            let tokenizer = trained(kind);
            let found = words(&tokenizer, "Q dog ZZ worked 猫 a");
            assert_eq!(found.len(), 6);
            assert_eq!([&*found[1], &*found[3], &*found[5]], ["dog", "worked", "a"]);
        }
        let word = trained(TokenizerKind::Word);
        let found = words(&word, "cats dog unseen a");
        assert_eq!(found, ["<unk>", "dog", "<unk>", "a"]);
        // The tab is unknown too, so that decoding joins two words.
        let found = words(&trained(TokenizerKind::Char), "dog a\tday worked");
        assert_eq!(found, ["dog", "a<unk>", "day", "worked"]);
    }

    #[test]
    fn a_character_of_several_byte_tokens_belongs_to_its_word() {
        let json = r#"{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],
            "normalizer":null,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,
            "trim_offsets":true,"use_regex":true},"post_processor":null,
            "decoder":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,
            "use_regex":true},"model":{"type":"BPE","dropout":null,"unk_token":"<unk>",
            "continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,
            "byte_fallback":false,"vocab":{"</s>":0,"<unk>":1,"a":2,"b":3,"Ġ":4,"Ã":5,"¼":6,"ð":7,
            "Ł":8,"Ĳ":9,"±":10},"merges":[]}}"#;
        let tokenizer = Tokenizer::from_json(json).unwrap();
        let text = "aü 🐱 b";
        let tokens = tokenizer.encode(text).unwrap();
        let found = words_of_tokens(&tokenizer, &tokens, text).unwrap();
        let names: Vec<_> = tokens
            .iter()
            .map(|&id| tokenizer.token(id).unwrap())
            .collect();
        assert_eq!(
            names,
            ["a", "Ã", "¼", "Ġ", "ð", "Ł", "Ĳ", "±", "Ġ", "b", "</s>"]
        );
        let none = None;
        assert_eq!(
            found,
            [
                Some(0),
                Some(0),
                none,
                none,
                Some(1),
                none,
                none,
                none,
                none,
                Some(2),
                none
            ]
        );
    }

    #[test]
    fn a_comma_that_is_decoded_apart_is_still_part_of_its_word() {
        let json = r#"{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],
            "normalizer":null,"pre_tokenizer":{"type":"Whitespace"},"post_processor":null,
            "decoder":null,"model":{"type":"WordLevel","unk_token":"<unk>",
            "vocab":{"</s>":0,"<unk>":1,"a":2,"dog":3,",":4,"runs":5}}}"#;
        let tokenizer = Tokenizer::from_json(json).unwrap();
        let of = |text: &str| {
            let tokens = tokenizer.encode(text).unwrap();
            words_of_tokens(&tokenizer, &tokens, text).unwrap()
        };
        assert_eq!(
            of("a dog, runs"),
            [Some(0), Some(1), Some(1), Some(2), None]
        );
        // `<unk>` has another length than the word that it stands for.
        for text in ["a dog, walks", "a dog, x", "a unprecedented, runs"] {
            assert_eq!(
                of(text),
                [Some(0), Some(1), Some(1), Some(2), None],
                "{text}"
            );
        }
        assert_eq!(of(""), [None]);
    }

    #[test]
    fn characters_are_found_where_two_texts_differ_least() {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        let places = |a: &str, b: &str| nearest(&chars(a), &chars(b));
        assert_eq!(places("kitten", "sitting"), [0, 1, 2, 3, 4, 5]);
        assert_eq!(places("bc", "abcd"), [1, 2]);
        assert_eq!(places("abcd", "bc"), [0, 0, 1, 1]);
        assert!(places("", "ab").is_empty());
        assert_eq!(places("ab", ""), [0, 0]);
        let long = "abcd".repeat(1000);
        let found = places(&long, &long[..3996]);
        assert!(found.is_sorted() && found.iter().all(|place| *place < 3996));
    }

    #[test]
    fn words_of_sentencepiece_models_are_found() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/marian/relu");
        let read = |name: &str| std::fs::read(format!("{folder}/{name}")).unwrap();
        let (model, vocab) = (read("source.spm"), read("vocab.json"));
        let tokenizer = Tokenizer::from_sentencepiece_and_vocab(&model, &vocab).unwrap();
        let text = "the  old dog sees a cat , doesn't it ?";
        let tokens = tokenizer.encode(text).unwrap();
        let found = words_of_tokens(&tokenizer, &tokens, text).unwrap();
        let mut seen: Vec<usize> = found.iter().flatten().copied().collect();
        assert!(seen.is_sorted());
        seen.dedup();
        assert_eq!(seen, (0..10).collect::<Vec<_>>());
        for (word, expected) in text.split_whitespace().enumerate() {
            let own = tokens.iter().zip(&found);
            let own: Vec<u32> = own
                .filter(|(_, w)| **w == Some(word))
                .map(|(t, _)| *t)
                .collect();
            if !own.contains(&tokenizer.unk()) {
                assert_eq!(tokenizer.decode(&own).unwrap().trim(), expected);
            }
        }
    }
}
