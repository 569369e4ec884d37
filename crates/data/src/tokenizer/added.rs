//! Tokens that are added to a vocabulary: words, and tags such as `>>de<<`.

use super::json::Json;
use super::sentencepiece::SPACE;
use super::spm::is_tag;
use super::train::PUNCTUATION;
use super::vocabulary::Vocabulary;
use super::{Engine, PAD, Tokenizer, Tokenizers};
use crate::{Error, Result};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;

/// What continues a word, so that `Writer` is not found in `Writers`.
const LETTER: &str = r"[\p{L}\p{M}\p{N}_]";

impl Tokenizers {
    /// These tokenizers with more tokens, on both sides. Old tokens keep their ids, except for `<pad>`, which
    /// stays the last one; text without the new words is encoded as before.
    ///
    /// A tag such as `>>de<<` is found at the beginning of a line, and is the token `>>de<<`. Anything else is a
    /// word. Where tokens mark the space before a word, its token is marked too: `Writer` becomes `▁Writer`,
    /// and is found after a space and at the beginning of a line. SentencePiece models find it also at the
    /// beginning of a longer word.
    ///
    /// It is an error if a token exists already, if it is empty or has white space, control characters or
    /// `▁`, or if the tokenizer would change it, for example to lower case.
    pub fn with_added(&self, tokens: &[String]) -> Result<Self> {
        self.extended(|tokenizer| tokenizer.with_added(tokens))
    }

    /// The same for tags of corpora: those that a side has already, and those that are given twice, are left as they
    /// are. It is an error if such a tag would not be found in text.
    pub fn with_tags(&self, tags: &[String]) -> Result<Self> {
        self.extended(|tokenizer| tokenizer.with_tags(tags))
    }

    fn extended(&self, more: impl Fn(&Tokenizer) -> Result<Tokenizer>) -> Result<Self> {
        Ok(match self {
            Self::Joint(both) => Self::Joint(more(both)?),
            Self::Shared { source, target } => Self::Shared {
                source: more(source)?,
                target: more(target)?,
            },
            Self::Separate { source, target } => Self::Separate {
                source: more(source)?,
                target: more(target)?,
            },
            Self::TargetOnly(target) => Self::TargetOnly(more(target)?),
        })
    }
}

impl Tokenizer {
    fn with_tags(&self, tags: &[String]) -> Result<Self> {
        let mut missing: Vec<String> = Vec::new();
        for (tag, name) in self.named(tags)? {
            match self.id(&name) {
                Some(id) if self.encode(tag)? != [id, self.eos()] => {
                    return Err(refused(
                        tag,
                        "it is a token already, but text is not encoded as it",
                    ));
                }
                None if !missing.iter().any(|other| other == tag) => missing.push(tag.into()),
                _ => {}
            }
        }
        match &missing[..] {
            [] => Ok(self.clone()),
            missing => self.with_added(missing),
        }
    }

    /// The names that tokens have in this vocabulary.
    fn named<'a>(&self, tokens: &'a [String]) -> Result<Vec<(&'a str, String)>> {
        let mark = match &self.engine {
            Engine::Json(json) => mark(&parts(json)?),
            Engine::SentencePiece(_) => SPACE,
        };
        let named = tokens.iter().map(|token| match is_tag(token) {
            true => (&**token, token.clone()),
            false => (&**token, format!("{mark}{token}")),
        });
        Ok(named.collect())
    }

    fn with_added(&self, tokens: &[String]) -> Result<Self> {
        let named = self.named(tokens)?;
        let mut seen = HashSet::new();
        for (token, name) in &named {
            let is_invalid = |c: char| c.is_whitespace() || c.is_control() || SPACE.contains(c);
            let wrong = if token.is_empty() {
                "it is empty"
            } else if token.contains(is_invalid) {
                "it has white space, a control character or ▁"
            } else if self.id(name).or(self.id(token)).is_some() {
                "it is a token already"
            } else if !seen.insert(token) {
                "it is given twice"
            } else {
                continue;
            };
            return Err(refused(token, wrong));
        }
        let words = named
            .iter()
            .map(|(token, _)| *token)
            .filter(|token| !is_tag(token));
        let words: Vec<&str> = words.collect();
        let names = named.iter().map(|(_, name)| name.clone());
        let more = match &self.engine {
            Engine::Json(json) => json.with_added(&words, names)?.into(),
            Engine::SentencePiece(spm) => {
                let old = spm.vocabulary.tokens().iter().filter(|token| *token != PAD);
                let tokens = old.cloned().chain(names).chain([PAD.to_string()]).collect();
                let vocabulary = Vocabulary::new(tokens).map_err(|e| refused("", &e))?;
                spm.extended(&words, Arc::new(vocabulary))?.into()
            }
        };
        self.verify(&more, &named)?;
        Ok(more)
    }

    /// Checks that old tokens have kept their ids, and that new ones are found in text.
    fn verify(&self, more: &Self, named: &[(&str, String)]) -> Result<()> {
        let is_moved = (0..self.pad()).any(|id| self.token(id) != more.token(id));
        for (id, (token, name)) in (self.pad()..).zip(named) {
            if is_moved || more.id(name) != Some(id) {
                return Err(refused(token, "the ids of other tokens would change"));
            }
            if more.encode(token)? != [id, more.eos()] {
                return Err(refused(token, "the tokenizer splits or changes it"));
            }
        }
        Ok(())
    }
}

impl Json {
    /// This tokenizer with these words, and these names of words and tags in its vocabulary.
    fn with_added(&self, words: &[&str], names: impl Iterator<Item = String>) -> Result<Self> {
        let mut parts = parts(self)?;
        let mark = mark(&parts);
        let kind = parts["model"]["type"]
            .as_str()
            .unwrap_or_default()
            .to_string();
        // Added tokens lie after the model's vocabulary, and would move if it grew. So they become a part of it.
        let mut added = self
            .inner
            .get_added_tokens_decoder()
            .into_iter()
            .collect::<Vec<_>>();
        added.sort_by_key(|(id, _)| *id);
        let size = self.inner.get_vocab_size(false) as u32;
        let after = added.iter().filter(|(id, _)| *id >= size);
        let after = after.map(|(_, token)| token.content.clone());
        let names: Vec<String> = names.collect();
        let vocabulary = &mut parts["model"]["vocab"];
        remove_pad(vocabulary);
        let marked: HashSet<String> = words.iter().map(|word| format!("{mark}{word}")).collect();
        for name in after
            .filter(|name| name != PAD)
            .chain(names.iter().cloned())
        {
            push(vocabulary, &name, marked.contains(&name));
        }
        if let Some(added) = parts["added_tokens"].as_array_mut() {
            added.retain(|token| token["content"] != PAD);
            let first = self.vocab_size - 1; // in the place of <pad>
            let tags = (first..).zip(&names).filter(|(_, name)| is_tag(name));
            // Where white space is kept, the space after a tag would be a token.
            let is_kept = self.encode(" a")? != self.encode("a")?;
            let tags = tags.map(|(id, tag)| {
                json!({"id": id, "content": tag, "single_word": false, "lstrip": false,
                       "rstrip": is_kept, "normalized": false, "special": false})
            });
            added.extend(tags);
        }
        if let Some(word) = words.first() {
            match &*kind {
                "BPE" => {
                    isolate(&mut parts, words, mark)?;
                    parts["model"]["ignore_merges"] = true.into();
                }
                "Unigram" if splits_punctuation(&parts) => isolate(&mut parts, words, mark)?,
                "Unigram" | "WordLevel" => {}
                _ => {
                    return Err(refused(
                        word,
                        &format!("a {kind} tokenizer cannot be extended"),
                    ));
                }
            }
        }
        Self::parse(
            parts.to_string().as_bytes(),
            "the tokenizer with added tokens",
        )
    }
}

/// Lets a tokenizer split words from the text around them. BPE must then take whole what is in its vocabulary. That
/// changes no other text: merges always lead from the characters of a token to the token.
///
/// Tokens that are added to the library's tokenizer itself would not do: what follows such a token is a text of
/// its own, so that the full stop after the word would get the mark of a space.
fn isolate(parts: &mut Value, words: &[&str], mark: &str) -> Result<()> {
    let escaped: Vec<String> = words.iter().map(|word| escape(word)).collect();
    let before = if mark.is_empty() {
        format!("(?<!{LETTER})")
    } else {
        mark.to_string()
    };
    let pattern = format!("{before}(?:{})(?!{LETTER})", escaped.join("|"));
    let split = |pattern: String| json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false});
    let mut steps = match parts["pre_tokenizer"].take() {
        Value::Null => vec![],
        mut sequence if sequence["type"] == "Sequence" => {
            let steps = sequence["pretokenizers"].as_array_mut().map(std::mem::take);
            steps.unwrap_or_default()
        }
        single => vec![single],
    };
    // Punctuation would be split from the word before the word is looked for: one step looks for both.
    match steps
        .iter_mut()
        .find_map(|step| Some((punctuation(step)?, step)))
    {
        Some((others, step)) => *step = split(format!("{pattern}|{others}")),
        None => steps.push(split(pattern)),
    }
    let known = |step: &Value| {
        ["Metaspace", "Split"]
            .iter()
            .any(|kind| step["type"] == **kind)
    };
    if !steps.iter().all(known) {
        let message = "the pre-tokenizer is neither Metaspace nor none";
        return Err(refused(words.first().unwrap_or(&""), message));
    }
    parts["pre_tokenizer"] = json!({"type": "Sequence", "pretokenizers": steps});
    Ok(())
}

/// Whether text is split around punctuation.
fn splits_punctuation(parts: &Value) -> bool {
    let steps = parts["pre_tokenizer"]["pretokenizers"].as_array();
    let mut steps = steps.into_iter().flatten();
    steps.any(|step| punctuation(step).is_some())
}

/// The pattern of a step that splits around punctuation.
fn punctuation(step: &Value) -> Option<String> {
    let pattern = step["pattern"]["Regex"].as_str()?;
    let splits = pattern == PUNCTUATION || pattern.ends_with(&format!("|{PUNCTUATION}"));
    splits.then(|| pattern.to_string())
}

/// A regular expression that matches this text. Only what has a meaning is escaped: `\<` and `\>` would be the ends of
/// a word.
fn escape(text: &str) -> String {
    let escaped = text.chars().flat_map(|c| {
        let slash = r"\.+*?()|[]{}^$#&-~".contains(c).then_some('\\');
        slash.into_iter().chain([c])
    });
    escaped.collect()
}

/// `▁` if that marks the space before a word in the tokens, otherwise nothing.
fn mark(parts: &Value) -> &'static str {
    let pre_tokenizer = &parts["pre_tokenizer"];
    let steps = pre_tokenizer["pretokenizers"].as_array();
    let mut steps = steps.into_iter().flatten().chain([pre_tokenizer]);
    if steps.any(|step| step["type"] == "Metaspace") {
        SPACE
    } else {
        ""
    }
}

/// Appends a token to the vocabulary of a model: an object of ids, or a list of scores.
fn push(vocabulary: &mut Value, token: &str, is_word: bool) {
    match vocabulary {
        Value::Object(ids) => {
            ids.insert(token.into(), ids.len().into());
        }
        Value::Array(pieces) => {
            // A word wins with the highest score. Others are not looked for: as low as an existing one.
            let scores = pieces.iter().filter_map(|piece| piece[1].as_f64());
            let lowest = scores.fold(0.0, f64::min);
            pieces.push(json!([token, if is_word { 0.0 } else { lowest }]));
        }
        _ => {}
    }
}

/// Removes `<pad>`, which is the last one.
fn remove_pad(vocabulary: &mut Value) {
    match vocabulary {
        Value::Object(ids) => {
            ids.remove(PAD);
        }
        Value::Array(pieces) => pieces.retain(|piece| piece[0] != PAD),
        _ => {}
    }
}

fn parts(json: &Json) -> Result<Value> {
    let parsed = serde_json::from_str(&json.text);
    parsed.map_err(|e| refused("", &e.to_string()))
}

fn refused(token: &str, message: &str) -> Error {
    Error::AddedToken {
        token: token.into(),
        message: message.into(),
    }
}
