//! Encoding each distinct word once. Text repeats its words, and encoding a word is slow.

use super::json::Json;
use super::spm::{is_tag, split_tag};
use super::train;
use crate::Result;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashMap;

type Tags = HashMap<String, u32>;

impl Json {
    /// The same as [`Json::encode`] of every line, if the tokenizer is [`separable`] with these tags.
    pub(super) fn encode_words(&self, lines: &[&str], tags: &Tags) -> Result<Vec<Vec<u32>>> {
        let split: Vec<_> = lines.iter().map(|line| strip_tags(line, tags)).collect();
        let mut index = HashMap::new();
        let mut distinct = Vec::new();
        for word in split
            .iter()
            .flatten()
            .flat_map(|line| line.split_whitespace())
        {
            index.entry(word).or_insert_with(|| {
                distinct.push(word);
                distinct.len() - 1
            });
        }
        let others = lines.iter().zip(&split).filter(|(_, text)| text.is_none());
        let others: Vec<&str> = others.map(|(line, _)| *line).collect();
        let mut others = self.encode_lines(&others)?.into_iter();
        let encoded = self.encode_lines(&distinct)?;
        let line = |(line, text): (&&str, &Option<&str>)| {
            let Some(text) = text else {
                return others.next().unwrap_or_default();
            };
            let mut ids = Vec::new();
            let before = line[..line.len() - text.len()].split_inclusive("<<");
            ids.extend(before.filter_map(|tag| tags.get(tag.trim_start())));
            for word in text.split_whitespace() {
                let (_eos, word) = encoded[index[word]].split_last().unwrap_or((&0, &[]));
                ids.extend_from_slice(word);
            }
            ids.push(self.specials.eos);
            ids
        };
        Ok(lines.iter().zip(&split).map(line).collect())
    }
}

/// The text after the tags at the beginning of a line. None if its ids are not those of its words: it has another tag,
/// or a literal `▁`.
fn strip_tags<'a>(line: &'a str, tags: &Tags) -> Option<&'a str> {
    let mut text = line;
    while let (Some(tag), rest) = split_tag(text.trim_start())
        && tags.contains_key(tag)
    {
        text = rest;
    }
    // Every tag begins with these characters.
    let is_tagged = text.contains(">>") && tags.keys().any(|tag| text.contains(&**tag));
    (!is_tagged && !text.contains(train::SPACE)).then_some(text)
}

/// The tags, with their ids, if the ids of a line are those of its tags and of its words, concatenated; otherwise none.
/// This holds if white space separates tokens, if its kind and amount do not matter, and if each word is normalised
/// separately: for the bpe, unigram and word tokenizers that are trained here, also after adding words and tags to them,
/// and after saving and loading them.
pub(super) fn separable(inner: &tokenizers::Tokenizer) -> Option<Tags> {
    let normalizer = value(inner.get_normalizer());
    let mut pre_tokenizer = value(inner.get_pre_tokenizer());
    // What splits punctuation and added words from the text around them sees one word at a time.
    if let Some(steps) = pre_tokenizer["pretokenizers"].as_array_mut()
        && steps.iter().skip(2).all(|step| step["type"] == "Split")
    {
        steps.truncate(2);
    }
    let tidy = |lowercase| train::tidy(lowercase).is_ok_and(|tidy| value(tidy) == normalizer);
    let subwords = train::pieces(false).is_ok_and(|pieces| value(pieces) == pre_tokenizer)
        && (tidy(false) || tidy(true));
    let words = pre_tokenizer == json!({"type": "WhitespaceSplit"})
        && (normalizer.is_null() || normalizer == json!({"type": "Lowercase"}));
    if !subwords && !words {
        return None;
    }
    let added = inner.get_added_tokens_decoder();
    let ordinary = added.into_iter().filter(|(_, token)| !token.special);
    let tags = ordinary.map(|(id, token)| {
        let is_plain = !token.normalized && !token.single_word && !token.lstrip;
        (is_plain && is_tag(&token.content)).then_some((token.content, id))
    });
    tags.collect()
}

pub(super) fn value(part: impl Serialize) -> Value {
    serde_json::to_value(part).unwrap_or(Value::Bool(false)) // equal to no part
}
