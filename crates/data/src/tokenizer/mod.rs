//! Text to token ids and back: the one wrapper over the `tokenizers` crate.
//!
//! Every tokenizer here holds three special tokens, and text never turns into `</s>` or `<pad>`,
//! even where it spells them out:
//!
//! 1. `encode_special_tokens` stops the crate from looking for special tokens in text.
//! 2. The subword tokenizers trained here cut text at every `<`, so no piece spells a special
//!    token, and `</s>` in a sentence survives as `<`, `/s>`.
//! 3. What a given or word-level tokenizer still maps to `</s>` or `<pad>` becomes `<unk>`.

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

/// The token that ends every sentence, and begins every translation.
pub const EOS: &str = "</s>";
/// The token for what is not in the vocabulary.
pub const UNK: &str = "<unk>";
/// The token that fills up batches where a model wants them rectangular. Always the last id.
pub const PAD: &str = "<pad>";

/// Lines encoded at once: until it is done, the library holds a string and more for every token.
const PARALLEL: usize = 1024;

/// A vocabulary, and how text is cut into its tokens. Cheap to clone.
#[derive(Clone)]
pub struct Tokenizer {
    inner: Arc<tokenizers::Tokenizer>,
    json: Arc<str>,
    silent: HashSet<u32>, // special tokens that decoding leaves out
    by_word: bool,        // whether words can be encoded one by one
    vocab_size: usize,
    eos: u32,
    unk: u32,
    pad: u32,
}

impl Tokenizer {
    /// Reads a `tokenizer.json`. See [`Tokenizer::from_json`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let json = fs::read(path).map_err(|source| match source.kind() {
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

    /// Reads a tokenizer from JSON, as this or another program wrote it.
    ///
    /// It must know `</s>` and `<unk>`. `<pad>` is added when missing and must be the last id
    /// otherwise. Truncation, padding and BPE dropout are turned off, and the post-processor is
    /// set to "the sentence, then `</s>`".
    pub fn from_json(json: &str) -> Result<Self> {
        let inner = guard(|| tokenizers::Tokenizer::from_bytes(json));
        Self::adopt(inner, "tokenizer JSON")
    }

    /// The tokenizer as JSON, which other programs read as well. The same tokenizer always gives
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

    /// The ids of a sentence, with `</s>` at the end.
    pub fn encode(&self, line: &str) -> Result<Vec<u32>> {
        let encoding = guard(|| self.inner.encode_fast(line, false))
            .map_err(|message| Error::Encode { message })?;
        Ok(self.finish(&encoding))
    }

    /// The ids of many sentences, in the order given. Runs on all cores.
    pub fn encode_batch<S: AsRef<str>>(&self, lines: &[S]) -> Result<Vec<Vec<u32>>> {
        let lines: Vec<&str> = lines.iter().map(AsRef::as_ref).collect();
        match self.by_word && !lines.iter().any(|line| line.contains(train::SPACE)) {
            true => self.encode_words(&lines),
            false => self.encode_lines(&lines),
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

    /// The text of these ids. Special tokens are left out, apart from `<unk>`, which shows.
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

    /// The text of one id as it stands in the vocabulary, such as `▁dog`.
    pub fn token(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    /// Number of tokens, the special ones included.
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

    /// The id of `<pad>`: always `vocab_size() - 1`.
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

    /// Makes any tokenizer one of ours, or says why it cannot be one.
    fn adopt(
        parsed: std::result::Result<tokenizers::Tokenizer, String>,
        place: &str,
    ) -> Result<Self> {
        let unusable = |message| Error::Tokenizer {
            place: place.into(),
            message,
        };
        let inner = parsed.map_err(unusable)?;
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
        // A model without an unknown token fails, or drops text, only when it meets one.
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

/// Turns off what would change or cut text from call to call, and sets `$A </s>`.
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

/// The number of tokens, if their ids are 0, 1, 2 and so on without holes: ids are rows of the
/// embedding.
fn check_ids(inner: &tokenizers::Tokenizer) -> std::result::Result<usize, String> {
    let mut ids: Vec<u32> = inner.get_vocab(true).into_values().collect();
    ids.sort_unstable();
    match ids.iter().enumerate().find(|(i, id)| *i != **id as usize) {
        None => Ok(ids.len()),
        Some((i, id)) if (*id as usize) < i => Err(format!("two tokens have the id {id}")),
        Some((i, _)) => Err(format!(
            "no token has the id {i}, but there are higher ones"
        )),
    }
}

/// The `tokenizers` crate panics on some malformed files, such as merges longer than any token
/// (<https://github.com/huggingface/tokenizers/issues/2094>): an error here, like any other.
fn guard<T>(f: impl FnOnce() -> tokenizers::Result<T>) -> std::result::Result<T, String> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => result.map_err(|e| e.to_string()),
        Err(_) => Err("the tokenizers library panicked on it".into()),
    }
}
