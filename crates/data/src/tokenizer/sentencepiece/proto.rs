//! What is read of a model file: a `ModelProto` of SentencePiece. Every default is the one that the format
//! defines.

use super::wire::{Fields, Value, push_bytes, push_float, push_number};

/// A model as the file has it, not yet checked.
#[derive(Debug, PartialEq)]
pub(super) struct ModelProto {
    pub(super) pieces: Vec<Piece>,
    pub(super) model_type: u64,
    pub(super) byte_fallback: bool,
    pub(super) treat_whitespace_as_suffix: bool,
    pub(super) normalizer: NormalizerSpec,
    pub(super) denormalizer: NormalizerSpec,
}

/// A piece of the vocabulary.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) score: f32,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Kind {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Unused,
    Byte,
}

/// How text is normalised.
#[derive(Debug, PartialEq)]
pub(super) struct NormalizerSpec {
    pub(super) charsmap: Vec<u8>,
    pub(super) add_dummy_prefix: bool,
    pub(super) remove_extra_whitespaces: bool,
    pub(super) escape_whitespaces: bool,
}

impl Default for NormalizerSpec {
    fn default() -> Self {
        Self {
            charsmap: Vec::new(),
            add_dummy_prefix: true,
            remove_extra_whitespaces: true,
            escape_whitespaces: true,
        }
    }
}

pub(super) const UNIGRAM: u64 = 1;
pub(super) const BPE: u64 = 2;
pub(super) const WORD: u64 = 3;
pub(super) const CHAR: u64 = 4;

impl ModelProto {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut model = Self {
            pieces: Vec::new(),
            model_type: UNIGRAM,
            byte_fallback: false,
            treat_whitespace_as_suffix: false,
            normalizer: NormalizerSpec::default(),
            denormalizer: NormalizerSpec::default(),
        };
        for field in Fields::new(bytes) {
            match field? {
                (1, Value::Bytes(piece)) => {
                    let index = model.pieces.len();
                    let piece = Piece::parse(piece).map_err(|e| format!("piece {index}: {e}"))?;
                    model.pieces.push(piece);
                }
                (2, Value::Bytes(spec)) => model.parse_trainer_spec(spec)?,
                (3, Value::Bytes(spec)) => model.normalizer.parse(spec)?,
                (5, Value::Bytes(spec)) => model.denormalizer.parse(spec)?,
                (1..=3 | 5, _) => return Err("not a SentencePiece model".into()),
                _ => {}
            }
        }
        if model.pieces.is_empty() {
            return Err("not a SentencePiece model: it has no pieces".into());
        }
        Ok(model)
    }

    fn parse_trainer_spec(&mut self, bytes: &[u8]) -> Result<(), String> {
        for field in Fields::new(bytes) {
            match field? {
                (3, value) => self.model_type = number(value)?,
                (24, value) => self.treat_whitespace_as_suffix = number(value)? != 0,
                (35, value) => self.byte_fallback = number(value)? != 0,
                _ => {}
            }
        }
        Ok(())
    }
}

impl Piece {
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut piece = Self {
            text: String::new(),
            score: 0.0,
            kind: Kind::Normal,
        };
        for field in Fields::new(bytes) {
            match field? {
                (1, Value::Bytes(text)) => {
                    let text = std::str::from_utf8(text).map_err(|_| "not valid UTF-8")?;
                    piece.text = text.to_string();
                }
                (2, Value::Fixed32(score)) => piece.score = f32::from_le_bytes(score),
                (3, Value::Varint(kind)) => {
                    piece.kind = Kind::of(kind).ok_or_else(|| format!("its type is {kind}"))?;
                }
                (1..=3, _) => {
                    return Err("a field has another type than SentencePiece gives it".into());
                }
                _ => {}
            }
        }
        Ok(piece)
    }

    /// The field of a `ModelProto` with this piece. Appended to a model file, it adds the piece.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut piece = Vec::new();
        push_bytes(&mut piece, 1, self.text.as_bytes());
        push_float(&mut piece, 2, self.score);
        push_number(&mut piece, 3, self.kind.number());
        let mut field = Vec::new();
        push_bytes(&mut field, 1, &piece);
        field
    }
}

impl Kind {
    const NUMBERED: [(u64, Self); 6] = [
        (1, Self::Normal),
        (2, Self::Unknown),
        (3, Self::Control),
        (4, Self::UserDefined),
        (5, Self::Unused),
        (6, Self::Byte),
    ];

    fn of(number: u64) -> Option<Self> {
        let found = Self::NUMBERED.into_iter().find(|(n, _)| *n == number);
        found.map(|(_, kind)| kind)
    }

    fn number(self) -> u64 {
        let found = Self::NUMBERED.into_iter().find(|(_, kind)| *kind == self);
        found.map_or(1, |(number, _)| number)
    }

    /// Whether text can be such a piece. Others are never found in text.
    pub(super) fn is_text(self) -> bool {
        matches!(self, Self::Normal | Self::UserDefined | Self::Unused)
    }
}

impl NormalizerSpec {
    fn parse(&mut self, bytes: &[u8]) -> Result<(), String> {
        for field in Fields::new(bytes) {
            match field? {
                (2, Value::Bytes(charsmap)) => self.charsmap = charsmap.to_vec(),
                (2, _) => return Err("its precompiled_charsmap is damaged: not bytes".into()),
                (3, value) => self.add_dummy_prefix = number(value)? != 0,
                (4, value) => self.remove_extra_whitespaces = number(value)? != 0,
                (5, value) => self.escape_whitespaces = number(value)? != 0,
                _ => {}
            }
        }
        Ok(())
    }
}

fn number(value: Value) -> Result<u64, String> {
    match value {
        Value::Varint(number) => Ok(number),
        _ => Err("a setting is not a number".into()),
    }
}
