//! Segmentation with a model of [SentencePiece](https://github.com/google/sentencepiece), exactly as that
//! library does it.
//!
//! | file | contents |
//! |---|---|
//! | `wire`, `proto` | read a model file |
//! | `charsmap`, `normalizer` | the text in which pieces are looked for |
//! | `unigram`, `bpe` | text to pieces |
//! | `trie` | finds strings at the beginning of a text |
//!
//! Unigram, BPE and char models are supported, with byte fallback, user-defined symbols and unused pieces.
//! Other kinds of models are refused by name.

mod bpe;
mod charsmap;
mod normalizer;
mod proto;
mod trie;
mod unigram;
mod wire;

use super::sampling::{Dice, Sampling};
use bpe::Bpe;
use normalizer::Normalizer;
pub(super) use proto::Kind;
use proto::{ModelProto, Piece};
use std::collections::HashMap;
pub(super) use trie::Trie;
use unigram::Unigram;

/// What stands for a space in pieces.
pub(super) const SPACE: &str = "▁";
/// The most bytes of a piece, as in SentencePiece.
const LONGEST_PIECE: usize = 8000;

/// A model that cuts text into pieces.
pub(super) struct Model {
    pieces: Vec<Piece>,
    ids: HashMap<String, u32>,
    normalizer: Normalizer,
    algorithm: Algorithm,
    user_defined: Trie,
    bytes: Option<Box<[u32; 256]>>, // the ids of the byte pieces, if unknown characters are cut into bytes
}

enum Algorithm {
    Unigram(Unigram),
    Bpe(Bpe),
    Char(Bpe),
}

/// How segmentations can be drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Method {
    Dropout,
    Lattice,
    None,
}

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Part<'a> {
    /// A piece, with its id in the model.
    Piece(u32),
    /// Characters that are in no piece.
    Unknown(&'a str),
}

impl Model {
    /// Reads and checks a model file.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let proto = ModelProto::parse(bytes)?;
        let ids = check(&proto)?;
        let defined = |(_, piece): &(u32, &Piece)| piece.kind == Kind::UserDefined;
        let defined = (0..).zip(&proto.pieces).filter(defined);
        let user_defined = Trie::new(defined.map(|(id, piece)| (piece.text.as_bytes(), id)));
        let algorithm = match proto.model_type {
            proto::UNIGRAM => Algorithm::Unigram(Unigram::new(&proto.pieces)),
            proto::BPE => Algorithm::Bpe(Bpe::new(&proto.pieces, true)),
            proto::CHAR => Algorithm::Char(Bpe::new(&proto.pieces, false)),
            proto::WORD => {
                return Err("SentencePiece models of the type word are not supported".into());
            }
            other => return Err(format!("its model_type is {other}, which is not known")),
        };
        Ok(Self {
            normalizer: Normalizer::new(&proto.normalizer)?,
            bytes: if proto.byte_fallback {
                Some(byte_pieces(&ids)?)
            } else {
                None
            },
            algorithm,
            user_defined,
            ids,
            pieces: proto.pieces,
        })
    }

    /// Calls `emit` with the parts of a text, from left to right.
    pub(super) fn encode(&self, text: &str, emit: impl FnMut(Part)) {
        let text = self.normalizer.normalize(text, &self.user_defined);
        let segments = match &self.algorithm {
            Algorithm::Unigram(unigram) => unigram.segment(&text),
            Algorithm::Bpe(bpe) | Algorithm::Char(bpe) => {
                bpe.segment(&text, &self.user_defined, || false)
            }
        };
        self.emit(&text, segments, emit);
    }

    /// The same, with a segmentation that is drawn.
    pub(super) fn encode_sampled(
        &self,
        text: &str,
        sampling: &Sampling,
        dice: &mut Dice,
        emit: impl FnMut(Part),
    ) {
        let text = self.normalizer.normalize(text, &self.user_defined);
        let segments = match &self.algorithm {
            Algorithm::Unigram(unigram) => unigram.draw(&text, sampling.alpha, dice),
            Algorithm::Bpe(bpe) | Algorithm::Char(bpe) => {
                let skip = || dice.unit() < sampling.dropout;
                bpe.segment(&text, &self.user_defined, skip)
            }
        };
        self.emit(&text, segments, emit);
    }

    /// How segmentations can be drawn.
    pub(super) fn method(&self) -> Method {
        match self.algorithm {
            Algorithm::Unigram(_) => Method::Lattice,
            Algorithm::Bpe(_) => Method::Dropout,
            Algorithm::Char(_) => Method::None,
        }
    }

    fn emit(&self, text: &str, segments: Vec<(usize, Option<u32>)>, mut emit: impl FnMut(Part)) {
        let (mut begin, mut unknown) = (0, 0); // of the part and of the unknown text before it
        for (end, id) in segments {
            if let Some(id) = id {
                self.emit_unknown(&text[unknown..begin], &mut emit);
                emit(Part::Piece(id));
                unknown = end;
            }
            begin = end;
        }
        self.emit_unknown(&text[unknown..begin], &mut emit);
    }

    fn emit_unknown(&self, text: &str, emit: &mut impl FnMut(Part)) {
        match &self.bytes {
            _ if text.is_empty() => {}
            None => emit(Part::Unknown(text)),
            Some(ids) => text
                .bytes()
                .for_each(|byte| emit(Part::Piece(ids[byte as usize]))),
        }
    }

    /// The pieces, in the order of their ids.
    pub(super) fn pieces(&self) -> impl ExactSizeIterator<Item = &str> {
        self.pieces.iter().map(|piece| &*piece.text)
    }

    /// The text of a piece.
    pub(super) fn piece(&self, id: u32) -> &str {
        self.pieces.get(id as usize).map_or("", |piece| &piece.text)
    }

    /// What a piece is; none if the model does not have it.
    pub(super) fn kind(&self, piece: &str) -> Option<Kind> {
        let id = *self.ids.get(piece)?;
        self.pieces.get(id as usize).map(|piece| piece.kind)
    }

    /// The text of pieces, as SentencePiece decodes them.
    pub(super) fn decode<'a>(&self, pieces: impl Iterator<Item = &'a str>) -> String {
        let Normalizer {
            add_dummy_prefix,
            remove_extra_whitespaces,
            ..
        } = self.normalizer;
        let mut text = String::new();
        let mut bytes = Vec::new();
        // Whether a space at the beginning, which encoding added, is still to be removed.
        let mut at_begin = add_dummy_prefix || remove_extra_whitespaces;
        for mut piece in pieces {
            let kind = self.kind(piece);
            if let Some(byte) = byte_of(piece).filter(|_| kind == Some(Kind::Byte)) {
                bytes.push(byte);
                continue;
            }
            push_utf8(&mut text, &mut bytes);
            at_begin &= text.is_empty();
            if kind == Some(Kind::Control) {
                continue;
            }
            if let Some(rest) = piece.strip_prefix(SPACE).filter(|_| at_begin) {
                piece = rest;
                at_begin = remove_extra_whitespaces; // otherwise only one was added
            }
            text.push_str(&piece.replace(SPACE, " "));
        }
        push_utf8(&mut text, &mut bytes);
        text
    }

    /// The bytes that add a piece to a model file, so that this word is one piece. None if it is a piece
    /// already; an error if the model can have no such pieces.
    pub(super) fn addition(&self, piece: &str) -> Result<Option<Vec<u8>>, String> {
        let kind = match self.algorithm {
            Algorithm::Unigram(_) => Kind::Normal, // no sum of log-probabilities is higher than 0
            Algorithm::Bpe(_) => Kind::UserDefined,
            Algorithm::Char(_) => return Err("a char model has no words".into()),
        };
        if self.ids.contains_key(piece) {
            return Ok(None);
        }
        let text = piece.to_string();
        Ok(Some(
            Piece {
                text,
                score: 0.0,
                kind,
            }
            .to_bytes(),
        ))
    }
}

/// Refuses what SentencePiece refuses, and what is not supported here. Returns the id of each piece.
fn check(proto: &ModelProto) -> Result<HashMap<String, u32>, String> {
    if proto.treat_whitespace_as_suffix {
        return Err("treat_whitespace_as_suffix is not supported".into());
    }
    if !proto.denormalizer.charsmap.is_empty() {
        return Err("a denormalizer is not supported".into());
    }
    let mut ids = HashMap::with_capacity(proto.pieces.len());
    let mut unknown = 0;
    for (id, Piece { text, score, kind }) in (0..).zip(&proto.pieces) {
        if text.is_empty() || text.contains('\0') || text.len() >= LONGEST_PIECE {
            return Err(format!(
                "piece {id} is empty, too long, or has a zero character"
            ));
        }
        if !score.is_finite() {
            return Err(format!("piece {id} has the score {score}"));
        }
        if ids.insert(text.clone(), id).is_some() {
            return Err(format!("two pieces are {text:?}"));
        }
        // SentencePiece itself fails if text has such a character.
        let is_character = text.chars().count() == 1 && proto.model_type != proto::UNIGRAM;
        match kind {
            Kind::Unknown => unknown += 1,
            Kind::Control if is_character => {
                return Err(format!(
                    "a control symbol of one character, {text:?}, is not supported"
                ));
            }
            Kind::Byte if !proto.byte_fallback => {
                return Err(format!(
                    "it has the byte piece {text:?}, but no byte_fallback"
                ));
            }
            Kind::Byte if byte_of(text).is_none() => {
                return Err(format!("the byte piece {text:?} is not a byte"));
            }
            _ => {}
        }
    }
    match unknown {
        1 => Ok(ids),
        _ => Err(format!(
            "it has {unknown} pieces of the type unknown instead of one"
        )),
    }
}

fn byte_pieces(ids: &HashMap<String, u32>) -> Result<Box<[u32; 256]>, String> {
    let mut found = Box::new([0; 256]);
    for (byte, place) in (0u8..=255).zip(found.iter_mut()) {
        let piece = format!("<0x{byte:02X}>");
        *place = *ids
            .get(&piece)
            .ok_or_else(|| format!("it has byte_fallback, but no piece {piece}"))?;
    }
    Ok(found)
}

/// The byte that a piece such as `<0x0A>` stands for.
fn byte_of(piece: &str) -> Option<u8> {
    let digits = piece.strip_prefix("<0x")?.strip_suffix('>')?;
    let is_hex = |digit: char| digit.is_ascii_digit() || ('A'..='F').contains(&digit);
    (digits.len() == 2 && digits.chars().all(is_hex)).then_some(())?;
    u8::from_str_radix(digits, 16).ok()
}

/// Appends bytes to a text and removes them. Each byte that is not UTF-8 becomes U+FFFD.
fn push_utf8(text: &mut String, bytes: &mut Vec<u8>) {
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    bytes.clear();
}
