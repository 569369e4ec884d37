//! The engine of tokenizers that are a SentencePiece model and a vocabulary.
//!
//! The ids of the model and those of the vocabulary are not the same. Pieces are looked up by their text, as
//! in Hugging Face's `MarianTokenizer`: two models can share one vocabulary, and text that is unknown to one
//! of them can be a token of the vocabulary.

use super::sampling::{Dice, Sampling};
use super::sentencepiece::{Kind, Method, Model, Part, SPACE};
use super::vocabulary::Vocabulary;
use super::{EOS, PAD, Specials, UNK};
use crate::{Error, Result};
use std::sync::Arc;
use tokenizers::utils::parallelism::MaybeParallelRefIterator;

pub(super) struct SentencePiece {
    pub(super) bytes: Vec<u8>,
    pub(super) vocabulary: Arc<Vocabulary>,
    model: Model,
    ids: Vec<u32>,     // the id in the vocabulary of each piece
    silent: Vec<bool>, // whether decoding skips the token with this id
    specials: Specials,
}

impl SentencePiece {
    /// A model file whose vocabulary is its pieces, with `<pad>` after them.
    pub(super) fn plain(bytes: Vec<u8>, place: &str) -> Result<Self> {
        let model = Model::parse(&bytes).map_err(|e| unusable(place, e))?;
        let pieces = model.pieces().map(String::from).collect();
        let vocabulary = Vocabulary::new(pieces).map_err(|e| unusable(place, e))?;
        let vocabulary = with_pad(vocabulary, place)?;
        Self::build(bytes, model, Arc::new(vocabulary), place)
    }

    /// A model file with this vocabulary.
    pub(super) fn new(bytes: Vec<u8>, vocabulary: Arc<Vocabulary>, place: &str) -> Result<Self> {
        let model = Model::parse(&bytes).map_err(|e| unusable(place, e))?;
        Self::build(bytes, model, vocabulary, place)
    }

    fn build(
        bytes: Vec<u8>,
        model: Model,
        vocabulary: Arc<Vocabulary>,
        place: &str,
    ) -> Result<Self> {
        let specials = specials(&vocabulary, place)?;
        let pieces = model.pieces();
        let ids = pieces.map(|piece| vocabulary.id(piece).unwrap_or(specials.unk));
        let tokens = (0..).zip(vocabulary.tokens());
        let silent = tokens.map(|(id, token)| {
            let is_control = model.kind(token) == Some(Kind::Control);
            id != specials.unk && (id == specials.eos || id == specials.pad || is_control)
        });
        Ok(Self {
            ids: ids.collect(),
            silent: silent.collect(),
            bytes,
            model,
            vocabulary,
            specials,
        })
    }

    pub(super) fn specials(&self) -> Specials {
        self.specials
    }

    /// The ids of a line. A tag such as `>>de<<` at its beginning is one token.
    pub(super) fn encode(&self, line: &str) -> Vec<u32> {
        let (tag, text) = split_tag(line);
        let mut ids = self.ids_of_tag(line, tag);
        self.model.encode(text, |part| ids.push(self.id(part)));
        self.specials.finish(ids)
    }

    /// The same, with a segmentation that is drawn.
    pub(super) fn encode_sampled(
        &self,
        line: &str,
        sampling: &Sampling,
        dice: &mut Dice,
    ) -> Vec<u32> {
        let (tag, text) = split_tag(line);
        let mut ids = self.ids_of_tag(line, tag);
        let emit = |part: Part| ids.push(self.id(part));
        self.model.encode_sampled(text, sampling, dice, emit);
        self.specials.finish(ids)
    }

    /// How segmentations can be drawn.
    pub(super) fn method(&self) -> Method {
        self.model.method()
    }

    fn ids_of_tag(&self, line: &str, tag: Option<&str>) -> Vec<u32> {
        let mut ids = Vec::with_capacity(line.len() / 3 + 2);
        ids.extend(tag.map(|tag| self.id(Part::Unknown(tag))));
        ids
    }

    fn id(&self, part: Part) -> u32 {
        match part {
            Part::Piece(piece) => self.ids[piece as usize],
            Part::Unknown(text) => self.vocabulary.id(text).unwrap_or(self.specials.unk),
        }
    }

    /// The ids of several lines. Uses all cores.
    pub(super) fn encode_batch(&self, lines: &[&str]) -> Vec<Vec<u32>> {
        lines
            .maybe_par_iter()
            .map(|line| self.encode(line))
            .collect()
    }

    /// The text of token ids, which must be in the vocabulary.
    pub(super) fn decode(&self, ids: &[u32]) -> String {
        let is_silent = |id: u32| self.silent.get(id as usize).copied().unwrap_or(true);
        let heard = ids.iter().filter(|id| !is_silent(**id));
        self.model
            .decode(heard.filter_map(|id| self.vocabulary.token(*id)))
    }

    /// The text of the pieces of a line: what the model finds, before the vocabulary is looked at.
    pub(super) fn pieces(&self, line: &str) -> Vec<String> {
        let mut pieces = Vec::new();
        self.model.encode(line, |part| {
            pieces.push(match part {
                Part::Piece(piece) => self.model.piece(piece).to_string(),
                Part::Unknown(text) => text.to_string(),
            });
        });
        pieces
    }

    /// This model with more pieces, and with another vocabulary.
    pub(super) fn extended(&self, words: &[&str], vocabulary: Arc<Vocabulary>) -> Result<Self> {
        let place = "the tokenizer with added tokens";
        let mut bytes = self.bytes.clone();
        for word in words {
            let piece = format!("{SPACE}{word}");
            let addition = self.model.addition(&piece);
            let addition = addition.map_err(|message| Error::AddedToken {
                token: word.to_string(),
                message,
            })?;
            bytes.extend(addition.unwrap_or_default());
        }
        Self::new(bytes, vocabulary, place)
    }
}

/// A vocabulary with `<pad>` as its last token, if it had none.
pub(super) fn with_pad(vocabulary: Vocabulary, place: &str) -> Result<Vocabulary> {
    if vocabulary.id(PAD).is_some() {
        return Ok(vocabulary);
    }
    let tokens = vocabulary.tokens().iter().cloned().chain([PAD.to_string()]);
    Vocabulary::new(tokens.collect()).map_err(|e| unusable(place, e))
}

fn specials(vocabulary: &Vocabulary, place: &str) -> Result<Specials> {
    let id = |token| {
        let place = place.into();
        vocabulary
            .id(token)
            .ok_or(Error::MissingToken { place, token })
    };
    let (eos, unk, pad) = (id(EOS)?, id(UNK)?, id(PAD)?);
    let last = vocabulary.tokens().len() as u32 - 1;
    if pad != last {
        let place = place.into();
        return Err(Error::PadNotLast { place, pad, last });
    }
    Ok(Specials { eos, unk, pad })
}

/// The tag at the beginning of a line, as `MarianTokenizer` finds it, and the text after it.
pub(super) fn split_tag(line: &str) -> (Option<&str>, &str) {
    let end = line.find("<<").filter(|_| line.starts_with(">>"));
    match end.and_then(|end| line.split_at_checked(end + 2)) {
        Some((tag, text)) => (Some(tag), text),
        None => (None, line),
    }
}

/// Whether a token is a tag such as `>>de<<`, which is found only at the beginning of a line.
pub(super) fn is_tag(token: &str) -> bool {
    token.len() > 4 && split_tag(token) == (Some(token), "")
}

pub(super) fn unusable(place: &str, message: String) -> Error {
    Error::Tokenizer {
        place: place.into(),
        message,
    }
}
