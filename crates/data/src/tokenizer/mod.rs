//! Encoding text as token ids, and decoding them. This wraps the `tokenizers` crate.
//!
//! Every tokenizer has three special tokens. Text is never encoded as `</s>` or `<pad>`, even if it
//! contains these strings:
//!
//! 1. `encode_special_tokens` stops the crate from searching for special tokens in text.
//! 2. The subword tokenizers that are trained here split text at every `<`, so that no token of the
//!    text is a special token. `</s>` in a sentence is encoded as `<`, `/s>`.
//! 3. If a given or word-level tokenizer still encodes text as `</s>` or `<pad>`, it is replaced by
//!    `<unk>`.

mod growth;
mod sides;
mod train;
mod words;

pub use sides::Tokenizers;

use crate::{Error, Result};
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::{fmt, fs, io};
use tokenizers::models::ModelWrapper;
use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{AddedToken, PaddingParams, TruncationParams};

/// The end-of-sentence token. It ends every sentence, on both sides.
pub const EOS: &str = "</s>";
/// The token for text that is not in the vocabulary.
pub const UNK: &str = "<unk>";
/// The start token: the decoder reads it before the first token of a translation. It is never predicted,
/// and nothing is padded with it; the name is that of the same token in Marian and Hugging Face models.
/// Always the last id.
pub const PAD: &str = "<pad>";

/// Lines that are encoded at once. During a call, the library keeps a string and offsets for every token.
const PARALLEL: usize = 1024;

/// A tokenizer with its vocabulary. Cheap to clone.
#[derive(Clone)]
pub struct Tokenizer {
    inner: Arc<tokenizers::Tokenizer>,
    json: Arc<str>,
    silent: HashSet<u32>, // special tokens that decoding skips
    by_word: bool,        // whether words can be encoded separately
    vocab_size: usize,
    eos: u32,
    unk: u32,
    pad: u32,
}

impl Tokenizer {
    /// Loads a `tokenizer.json`. See [`Tokenizer::from_json`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let regular = || {
            // A pipe or a device could be read for ever.
            if fs::metadata(path)?.is_file() {
                fs::read(path)
            } else {
                Err(io::Error::other("not a regular file"))
            }
        };
        let json = regular().map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => Error::MissingFile {
                path: path.into(),
                tried: Vec::new(),
            },
            _ => Error::Io {
                path: path.into(),
                source,
            },
        })?;
        let place = path.display().to_string();
        let inner = guard(|| tokenizers::Tokenizer::from_bytes(&json));
        Self::adopt(inner, &place)
    }

    /// Parses the JSON of a tokenizer that this or another program wrote.
    ///
    /// It must have `</s>` and `<unk>`. `<pad>` must be the last id, and is added if it is missing.
    /// Truncation, padding and BPE dropout are turned off. The post-processor is set to append
    /// `</s>`.
    pub fn from_json(json: &str) -> Result<Self> {
        let inner = guard(|| tokenizers::Tokenizer::from_bytes(json));
        Self::adopt(inner, "tokenizer JSON")
    }

    /// The tokenizer as JSON in the format of Hugging Face tokenizers. The same tokenizer always gives
    /// the same text.
    pub fn to_json(&self) -> &str {
        &self.json
    }

    /// Writes the JSON to a file.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        fs::write(path, &*self.json).map_err(|source| Error::Write {
            path: path.into(),
            source,
        })
    }

    /// The token ids of a sentence, with `</s>` at the end.
    pub fn encode(&self, line: &str) -> Result<Vec<u32>> {
        let encoding = guard(|| self.inner.encode_fast(line, false))
            .map_err(|message| Error::Encode { message })?;
        Ok(self.finish(&encoding))
    }

    /// The token ids of several sentences, in the same order. Uses all cores.
    pub fn encode_batch<S: AsRef<str>>(&self, lines: &[S]) -> Result<Vec<Vec<u32>>> {
        let lines: Vec<&str> = lines.iter().map(AsRef::as_ref).collect();
        if self.by_word && !lines.iter().any(|line| line.contains(train::SPACE)) {
            self.encode_words(&lines)
        } else {
            self.encode_lines(&lines)
        }
    }

    fn encode_lines(&self, lines: &[&str]) -> Result<Vec<Vec<u32>>> {
        let mut all = Vec::with_capacity(lines.len());
        for lines in lines.chunks(PARALLEL) {
            let encodings = guard(|| self.inner.encode_batch_fast(lines.to_vec(), false))
                .map_err(|message| Error::Encode { message })?;
            all.extend(encodings.iter().map(|encoding| self.finish(encoding)));
        }
        Ok(all)
    }

    /// The text of these token ids. Special tokens other than `<unk>` are skipped.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        let vocab_size = self.vocab_size;
        if let Some(&id) = ids.iter().find(|id| **id as usize >= vocab_size) {
            return Err(Error::UnknownId { id, vocab_size });
        }
        let ids: Vec<u32> = ids
            .iter()
            .copied()
            .filter(|id| !self.silent.contains(id))
            .collect();
        guard(|| self.inner.decode(&ids, false)).map_err(|message| Error::Decode { message })
    }

    /// The token with this id, such as `▁dog`.
    pub fn token(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    /// Number of tokens, including special tokens.
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    /// The id of `</s>`.
    pub fn eos(&self) -> u32 {
        self.eos
    }

    /// The id of `<unk>`.
    pub fn unk(&self) -> u32 {
        self.unk
    }

    /// The id of `<pad>`, which is always `vocab_size() - 1`.
    pub fn pad(&self) -> u32 {
        self.pad
    }

    fn finish(&self, encoding: &tokenizers::Encoding) -> Vec<u32> {
        let mut ids = Vec::with_capacity(encoding.len() + 1);
        ids.extend(encoding.get_ids().iter().map(|&id| match id {
            id if id == self.eos || id == self.pad => self.unk,
            id => id,
        }));
        ids.push(self.eos);
        ids
    }

    /// Checks a tokenizer and prepares it for use here.
    fn adopt(
        parsed: std::result::Result<tokenizers::Tokenizer, String>,
        place: &str,
    ) -> Result<Self> {
        let unusable = |message| Error::Tokenizer {
            place: place.into(),
            message,
        };
        let inner = parsed.map_err(unusable)?;
        growth::check(&inner).map_err(unusable)?;
        for token in [EOS, UNK] {
            if inner.token_to_id(token).is_none() {
                let place = place.into();
                return Err(Error::MissingToken { place, token });
            }
        }
        check_ids(&inner).map_err(unusable)?;
        let inner = guard(|| normalise(inner)).map_err(unusable)?;

        let vocab_size = check_ids(&inner).map_err(unusable)?;
        let id = |token| {
            let place = place.into();
            let id = inner.token_to_id(token);
            id.ok_or(Error::MissingToken { place, token })
        };
        let (eos, unk, pad) = (id(EOS)?, id(UNK)?, id(PAD)?);
        let last = vocab_size as u32 - 1;
        if pad != last {
            let place = place.into();
            return Err(Error::PadNotLast { place, pad, last });
        }
        let silent = inner
            .get_added_tokens_decoder()
            .into_iter()
            .filter(|(id, token)| token.special && *id != unk)
            .map(|(id, _)| id)
            .collect();
        let json = guard(|| inner.to_string(true)).map_err(unusable)?;
        let tokenizer = Self {
            by_word: words::separable(&inner),
            inner: inner.into(),
            json: json.into(),
            silent,
            vocab_size,
            eos,
            unk,
            pad,
        };
        // A model without an unknown token fails, or drops text, when it meets an unknown character.
        let probe = tokenizer.encode("\u{10fffd}");
        probe.map_err(|e| unusable(e.to_string()))?;
        Ok(tokenizer)
    }
}

impl PartialEq for Tokenizer {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Tokenizer({} tokens)", self.vocab_size)
    }
}

/// Turns off truncation, padding and dropout, and sets the template `$A </s>`.
fn normalise(mut inner: tokenizers::Tokenizer) -> tokenizers::Result<tokenizers::Tokenizer> {
    inner.with_truncation(None::<TruncationParams>)?;
    inner.with_padding(None::<PaddingParams>);
    if let ModelWrapper::BPE(bpe) = inner.get_model()
        && bpe.dropout.is_some()
    {
        tracing::warn!("the tokenizer's BPE dropout is turned off: encoding must not be random");
        let mut bpe = bpe.clone();
        bpe.dropout = None;
        inner.with_model(bpe);
    }
    inner.add_special_tokens([EOS, UNK, PAD].map(|t| AddedToken::from(t, true)))?;
    let eos = inner.token_to_id(EOS).ok_or("no </s>")?;
    let template = TemplateProcessing::builder()
        .try_single(format!("$A {EOS}"))?
        .try_pair(format!("$A {EOS} $B:1 {EOS}:1"))?
        .special_tokens(vec![(EOS, eos)])
        .build()?;
    inner.with_post_processor(Some(template));
    inner.set_encode_special_tokens(true);
    Ok(inner)
}

/// The number of tokens. It is an error if their ids are not 0, 1, 2 and so on: an id is a row of the
/// embedding matrix.
fn check_ids(inner: &tokenizers::Tokenizer) -> std::result::Result<usize, String> {
    let mut ids: Vec<u32> = inner.get_vocab(true).into_values().collect();
    ids.sort_unstable();
    match ids.iter().enumerate().find(|(i, id)| *i != **id as usize) {
        None => Ok(ids.len()),
        Some((i, id)) if (*id as usize) < i => Err(format!("two tokens have the id {id}")),
        Some((i, _)) => Err(format!("no token has the id {i}, but there are higher ids")),
    }
}

/// Turns a panic into an error. The `tokenizers` crate panics on some malformed files, such as merges
/// longer than any token (<https://github.com/huggingface/tokenizers/issues/2094>).
fn guard<T>(f: impl FnOnce() -> tokenizers::Result<T>) -> std::result::Result<T, String> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => result.map_err(|e| e.to_string()),
        Err(_) => Err("the tokenizers library panicked".into()),
    }
}
