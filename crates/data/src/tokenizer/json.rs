//! The engine of tokenizers that are a `tokenizer.json`. This wraps the `tokenizers` crate.

use super::sampling::Sampler;
use super::{EOS, PAD, Specials, UNK, growth, words};
use crate::{Error, Result};
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use tokenizers::models::ModelWrapper;
use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{AddedToken, PaddingParams, TruncationParams};

/// Lines that are encoded at once. During a call, the library keeps a string and offsets for every token.
const PARALLEL: usize = 1024;

pub(super) struct Json {
    pub(super) inner: tokenizers::Tokenizer,
    pub(super) text: String,
    pub(super) vocab_size: usize,
    pub(super) specials: Specials,
    silent: HashSet<u32>, // special tokens that decoding skips
    pub(super) by_word: Option<HashMap<String, u32>>, // the tags, if words can be encoded separately
    pub(super) sampler: OnceLock<Sampler>,
}

impl Json {
    /// Parses the JSON of a tokenizer and prepares it for use here.
    pub(super) fn parse(json: &[u8], place: &str) -> Result<Self> {
        Self::adopt(guard(|| tokenizers::Tokenizer::from_bytes(json)), place)
    }

    pub(super) fn encode(&self, line: &str) -> Result<Vec<u32>> {
        let encoding = self.encoding(line)?;
        Ok(self.specials.finish(encoding.get_ids().to_vec()))
    }

    pub(super) fn pieces(&self, line: &str) -> Result<Vec<String>> {
        Ok(self.encoding(line)?.get_tokens().to_vec())
    }

    fn encoding(&self, line: &str) -> Result<tokenizers::Encoding> {
        guard(|| self.inner.encode_fast(line, false)).map_err(|message| Error::Encode { message })
    }

    pub(super) fn encode_batch(&self, lines: &[&str]) -> Result<Vec<Vec<u32>>> {
        match &self.by_word {
            Some(tags) => self.encode_words(lines, tags),
            None => self.encode_lines(lines),
        }
    }

    pub(super) fn encode_lines(&self, lines: &[&str]) -> Result<Vec<Vec<u32>>> {
        let mut all = Vec::with_capacity(lines.len());
        for lines in lines.chunks(PARALLEL) {
            let encodings = guard(|| self.inner.encode_batch_fast(lines.to_vec(), false))
                .map_err(|message| Error::Encode { message })?;
            let ids = encodings.iter().map(|encoding| encoding.get_ids().to_vec());
            all.extend(ids.map(|ids| self.specials.finish(ids)));
        }
        Ok(all)
    }

    pub(super) fn decode(&self, ids: &[u32]) -> Result<String> {
        let heard = ids.iter().copied().filter(|id| !self.silent.contains(id));
        let ids: Vec<u32> = heard.collect();
        guard(|| self.inner.decode(&ids, false)).map_err(|message| Error::Decode { message })
    }

    /// Checks a tokenizer and prepares it for use here.
    pub(super) fn adopt(
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
            sampler: OnceLock::new(),
            inner,
            text: json,
            silent,
            vocab_size,
            specials: Specials { eos, unk, pad },
        };
        // A model without an unknown token fails, or drops text, when it meets an unknown character.
        let probe = tokenizer.encode("\u{10fffd}");
        probe.map_err(|e| unusable(e.to_string()))?;
        Ok(tokenizer)
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
pub(super) fn guard<T>(
    f: impl FnOnce() -> tokenizers::Result<T>,
) -> std::result::Result<T, String> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => result.map_err(|e| e.to_string()),
        Err(_) => Err("the tokenizers library panicked".into()),
    }
}
