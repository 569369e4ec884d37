//! Encoding text as token ids, and decoding them: with a `tokenizer.json` (`json`, which wraps the
//! `tokenizers` crate) or with a SentencePiece model and a vocabulary (`spm`, `sentencepiece/`, `vocabulary`).
//!
//! Every tokenizer has three special tokens. Text is never encoded as `</s>` or `<pad>`, even if it
//! contains these strings:
//!
//! 1. `encode_special_tokens` stops the crate from searching for special tokens in text. SentencePiece
//!    never finds control symbols in text.
//! 2. The subword tokenizers that are trained here split text at every `<`, so that no token of the
//!    text is a special token. `</s>` in a sentence is encoded as `<`, `/s>`.
//! 3. If a given or word-level tokenizer still encodes text as `</s>` or `<pad>`, it is replaced by
//!    `<unk>`.

mod added;
mod bytes;
mod dropout;
mod growth;
mod json;
mod lattice;
mod prepare;
mod sample;
mod sampling;
mod sentencepiece;
mod sides;
mod spm;
mod train;
mod vocabulary;
mod words;

pub use sample::Sample;
pub use sampling::Sampling;
pub use sides::Tokenizers;

use crate::{Error, Result};
use json::Json;
use spm::SentencePiece;
use std::path::Path;
use std::sync::Arc;
use std::{fmt, fs, io};
use vocabulary::Vocabulary;

/// The end-of-sentence token. It ends every sentence, on both sides.
pub const EOS: &str = "</s>";
/// The token for text that is not in the vocabulary.
pub const UNK: &str = "<unk>";
/// The start token: the decoder reads it before the first token of a translation. It is never predicted,
/// and nothing is padded with it; the name is that of the same token in Marian and Hugging Face models.
/// Always the last id.
pub const PAD: &str = "<pad>";

/// A tokenizer with its vocabulary. Cheap to clone.
#[derive(Clone)]
pub struct Tokenizer {
    engine: Engine,
}

#[derive(Clone)]
enum Engine {
    Json(Arc<Json>),
    SentencePiece(Arc<SentencePiece>),
}

/// The ids of the special tokens.
#[derive(Clone, Copy)]
struct Specials {
    eos: u32,
    unk: u32,
    pad: u32,
}

impl Specials {
    /// The ids of a text with `</s>` at the end, and at no other place.
    fn finish(self, mut ids: Vec<u32>) -> Vec<u32> {
        let special = |id: &&mut u32| [self.eos, self.pad].contains(id);
        ids.iter_mut().filter(special).for_each(|id| *id = self.unk);
        ids.push(self.eos);
        ids
    }
}

impl Tokenizer {
    /// Loads a `tokenizer.json` or a model of SentencePiece, whichever the file is. See
    /// [`Tokenizer::from_json`] and [`Tokenizer::from_sentencepiece`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = read(path)?;
        let place = path.display().to_string();
        // The first field of a model is a piece, whose tag is the byte of a line feed.
        if bytes.starts_with(b"\n") && !bytes.trim_ascii_start().starts_with(b"{") {
            SentencePiece::plain(bytes, &place).map(Self::from)
        } else {
            Json::parse(&bytes, &place).map(Self::from)
        }
    }

    /// Parses the JSON of a tokenizer that this or another program wrote.
    ///
    /// It must have `</s>` and `<unk>`. `<pad>` must be the last id, and is added if it is missing.
    /// Truncation, padding and BPE dropout are turned off. The post-processor is set to append
    /// `</s>`.
    pub fn from_json(json: &str) -> Result<Self> {
        Json::parse(json.as_bytes(), "tokenizer JSON").map(Self::from)
    }

    /// Reads a model of SentencePiece (a `.model` or `.spm` file). Its vocabulary is its pieces, in their
    /// order, and `<pad>` after them.
    ///
    /// It must have `</s>` and `<unk>`. If it has `<pad>`, that must be its last piece.
    pub fn from_sentencepiece(model: &[u8]) -> Result<Self> {
        SentencePiece::plain(model.to_vec(), "SentencePiece model").map(Self::from)
    }

    /// Reads a model of SentencePiece and a `vocab.json` (`{"token": id}`), as MarianMT models have them.
    /// The pieces of the model are looked up in the vocabulary by their text.
    ///
    /// The vocabulary must have `</s>` and `<unk>`. `<pad>` must be its last id, and is added if it is missing.
    pub fn from_sentencepiece_and_vocab(model: &[u8], vocab: &[u8]) -> Result<Self> {
        let vocabulary = parse_vocabulary(vocab, "vocab.json")?;
        let place = "SentencePiece model";
        SentencePiece::new(model.to_vec(), vocabulary, place).map(Self::from)
    }

    /// The tokenizer as JSON in the format of Hugging Face tokenizers; none if it is a model of SentencePiece.
    /// The same tokenizer always gives the same text.
    pub fn to_json(&self) -> Option<&str> {
        match &self.engine {
            Engine::Json(json) => Some(&json.text),
            Engine::SentencePiece(_) => None,
        }
    }

    /// Bytes that are the same for the same tokenizer only: its JSON, or the model of SentencePiece and then
    /// the vocabulary.
    pub fn content(&self) -> Vec<u8> {
        match &self.engine {
            Engine::Json(json) => json.text.clone().into_bytes(),
            Engine::SentencePiece(spm) => {
                [&spm.bytes[..], spm.vocabulary.to_json().as_bytes()].concat()
            }
        }
    }

    /// The token ids of a sentence, with `</s>` at the end.
    ///
    /// With a model of SentencePiece, a tag such as `>>de<<` at the beginning is one token, as it is for
    /// Hugging Face's `MarianTokenizer`; a tag that is not in the vocabulary is `<unk>`.
    pub fn encode(&self, line: &str) -> Result<Vec<u32>> {
        match &self.engine {
            Engine::Json(json) => json.encode(line),
            Engine::SentencePiece(spm) => Ok(spm.encode(line)),
        }
    }

    /// The token ids of several sentences, in the same order. Uses all cores.
    pub fn encode_batch<S: AsRef<str>>(&self, lines: &[S]) -> Result<Vec<Vec<u32>>> {
        let lines: Vec<&str> = lines.iter().map(AsRef::as_ref).collect();
        match &self.engine {
            Engine::Json(json) => json.encode_batch(&lines),
            Engine::SentencePiece(spm) => Ok(spm.encode_batch(&lines)),
        }
    }

    /// The pieces of a text before they become ids, without `</s>`. A model of SentencePiece gives text that it
    /// does not know as it is; a tag is not treated specially.
    pub fn pieces(&self, line: &str) -> Result<Vec<String>> {
        match &self.engine {
            Engine::Json(json) => json.pieces(line),
            Engine::SentencePiece(spm) => Ok(spm.pieces(line)),
        }
    }

    /// The text of these token ids. Special tokens other than `<unk>` are skipped.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        let vocab_size = self.vocab_size();
        if let Some(&id) = ids.iter().find(|id| **id as usize >= vocab_size) {
            return Err(Error::UnknownId { id, vocab_size });
        }
        match &self.engine {
            Engine::Json(json) => json.decode(ids),
            Engine::SentencePiece(spm) => Ok(spm.decode(ids)),
        }
    }

    /// The token with this id, such as `▁dog`.
    pub fn token(&self, id: u32) -> Option<String> {
        match &self.engine {
            Engine::Json(json) => json.inner.id_to_token(id),
            Engine::SentencePiece(spm) => spm.vocabulary.token(id).map(String::from),
        }
    }

    /// The id of a token, such as `▁dog`.
    pub fn id(&self, token: &str) -> Option<u32> {
        match &self.engine {
            Engine::Json(json) => json.inner.token_to_id(token),
            Engine::SentencePiece(spm) => spm.vocabulary.id(token),
        }
    }

    /// Number of tokens, including special tokens.
    pub fn vocab_size(&self) -> usize {
        match &self.engine {
            Engine::Json(json) => json.vocab_size,
            Engine::SentencePiece(spm) => spm.vocabulary.tokens().len(),
        }
    }

    /// The id of `</s>`.
    pub fn eos(&self) -> u32 {
        self.specials().eos
    }

    /// The id of `<unk>`.
    pub fn unk(&self) -> u32 {
        self.specials().unk
    }

    /// The id of `<pad>`, which is always `vocab_size() - 1`.
    pub fn pad(&self) -> u32 {
        self.specials().pad
    }

    fn specials(&self) -> Specials {
        match &self.engine {
            Engine::Json(json) => json.specials,
            Engine::SentencePiece(spm) => spm.specials(),
        }
    }
}

impl From<Json> for Tokenizer {
    fn from(json: Json) -> Self {
        let engine = Engine::Json(json.into());
        Self { engine }
    }
}

impl From<SentencePiece> for Tokenizer {
    fn from(spm: SentencePiece) -> Self {
        let engine = Engine::SentencePiece(spm.into());
        Self { engine }
    }
}

impl PartialEq for Tokenizer {
    fn eq(&self, other: &Self) -> bool {
        match (&self.engine, &other.engine) {
            (Engine::Json(a), Engine::Json(b)) => a.text == b.text,
            (Engine::SentencePiece(a), Engine::SentencePiece(b)) => {
                a.bytes == b.bytes && a.vocabulary == b.vocabulary
            }
            _ => false,
        }
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Tokenizer({} tokens)", self.vocab_size())
    }
}

/// Parses a `vocab.json`. `<pad>` is added if it is missing.
fn parse_vocabulary(json: &[u8], place: &str) -> Result<Arc<Vocabulary>> {
    let vocabulary = Vocabulary::parse(json).map_err(|e| spm::unusable(place, e))?;
    spm::with_pad(vocabulary, place).map(Arc::new)
}

/// The bytes of a regular file. A pipe or a device could be read for ever.
fn read(path: &Path) -> Result<Vec<u8>> {
    let regular = || {
        if fs::metadata(path)?.is_file() {
            fs::read(path)
        } else {
            Err(io::Error::other("not a regular file"))
        }
    };
    regular().map_err(|source| Error::reading(path, source))
}
