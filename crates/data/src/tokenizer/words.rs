//! Encoding each distinct word once. Text repeats its words, and encoding a word is slow.

use super::json::Json;
use super::train;
use crate::Result;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashMap;

impl Json {
    /// The same as [`Json::encode`] of every line, if the tokenizer is [`separable`] and no line has a
    /// literal `▁`.
    pub(super) fn encode_words(&self, lines: &[&str]) -> Result<Vec<Vec<u32>>> {
        let mut index = HashMap::new();
        let mut distinct = Vec::new();
        for word in lines.iter().flat_map(|line| line.split_whitespace()) {
            index.entry(word).or_insert_with(|| {
                distinct.push(word);
                distinct.len() - 1
            });
        }
        let encoded = self.encode_lines(&distinct)?;
        let line = |line: &&str| {
            let mut ids = Vec::new();
            for word in line.split_whitespace() {
                let (_eos, word) = encoded[index[word]].split_last().unwrap_or((&0, &[]));
                ids.extend_from_slice(word);
            }
            ids.push(self.specials.eos);
            ids
        };
        Ok(lines.iter().map(line).collect())
    }
}

/// Whether the ids of a line are those of its words, concatenated. This holds if white space separates
/// tokens, if its kind and amount do not matter, and if each word is normalised separately: for the
/// bpe, unigram and word tokenizers that are trained here, also after saving and loading them.
pub(super) fn separable(inner: &tokenizers::Tokenizer) -> bool {
    let normalizer = value(inner.get_normalizer());
    let pre_tokenizer = value(inner.get_pre_tokenizer());
    let tidy = |lowercase| train::tidy(lowercase).is_ok_and(|tidy| value(tidy) == normalizer);
    let subwords = train::pieces().is_ok_and(|pieces| value(pieces) == pre_tokenizer)
        && (tidy(false) || tidy(true));
    let words = pre_tokenizer == json!({"type": "WhitespaceSplit"})
        && (normalizer.is_null() || normalizer == json!({"type": "Lowercase"}));
    let added = inner.get_added_tokens_decoder();
    (subwords || words) && added.values().all(|token| token.special)
}

pub(super) fn value(part: impl Serialize) -> Value {
    serde_json::to_value(part).unwrap_or(Value::Bool(false)) // equal to no part
}
