//! Why a pair was dropped.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a pair was dropped. The codes are written to disk, so they never change: a new reason takes the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Reason {
    /// A line cannot be read, and `data.bad_lines` is `"skip"`.
    BadLine = 1,
    /// A side has no text, or no tokens.
    Empty,
    /// A side has more tokens than `data.max_length`.
    TooLong,
    /// A side has fewer tokens than `data.clean.min_tokens`.
    TooShort,
    /// A side has more characters than `data.clean.max_chars`.
    TooManyChars,
    /// A side is more than `data.clean.max_ratio` times as long as the other.
    Ratio,
    /// The pair came before in its corpus.
    Duplicate,
    /// Both sides are the same text.
    Same,
    /// The share of letters on a side is below `data.clean.min_letters`.
    FewLetters,
    /// Most letters of a side are not of its scripts.
    WrongScript,
    /// A side is a sentence of the validation or test data.
    Overlap,
    /// The picture or the features of the source cannot be read, and `data.bad_lines` is `"skip"`.
    BadSource,
}

impl Reason {
    /// Every reason, in the order of the codes.
    pub const ALL: [Reason; 12] = [
        Self::BadLine,
        Self::Empty,
        Self::TooLong,
        Self::TooShort,
        Self::TooManyChars,
        Self::Ratio,
        Self::Duplicate,
        Self::Same,
        Self::FewLetters,
        Self::WrongScript,
        Self::Overlap,
        Self::BadSource,
    ];

    /// A number from 1 on. 0 is free for pairs that are kept.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The reason with this code.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.code() == code)
    }

    /// The name in files, such as `too_long`.
    pub fn name(self) -> &'static str {
        match self {
            Self::BadLine => "bad_line",
            Self::Empty => "empty",
            Self::TooLong => "too_long",
            Self::TooShort => "too_short",
            Self::TooManyChars => "too_many_chars",
            Self::Ratio => "ratio",
            Self::Duplicate => "duplicate",
            Self::Same => "same",
            Self::FewLetters => "few_letters",
            Self::WrongScript => "wrong_script",
            Self::Overlap => "overlap",
            Self::BadSource => "bad_source",
        }
    }
}

/// Words that follow a number of pairs: "2 longer than data.max_length".
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::BadLine => "that cannot be read",
            Self::Empty => "empty",
            Self::TooLong => "longer than data.max_length",
            Self::TooShort => "shorter than data.clean.min_tokens",
            Self::TooManyChars => "with more characters than data.clean.max_chars",
            Self::Ratio => "with lengths further apart than data.clean.max_ratio",
            Self::Duplicate => "that came before",
            Self::Same => "with the same text on both sides",
            Self::FewLetters => "with fewer letters than data.clean.min_letters",
            Self::WrongScript => "in another script",
            Self::Overlap => "also in valid or test",
            Self::BadSource => "whose picture or features cannot be read",
        })
    }
}
