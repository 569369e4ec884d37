//! `[data.tokenizer]`.

use crate::resolve::exists;
use crate::{Error, FilePair, Result};
use attend_config::{ConfigError, check_ranges};
use schemars::JsonSchema;
use serde::de::{self, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::path::PathBuf;

/// The least tokens of a vocabulary with bytes: these, the special tokens and one more.
const WITH_BYTES: usize = 260;

/// `[data.tokenizer]`: how text is split into tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TokenizerConfig {
    /// The kind of tokenizer.
    pub kind: TokenizerKind,
    /// Number of tokens, including `</s>`, `<unk>` and `<pad>`. At least 4: these and one more. A small
    /// corpus may give fewer.
    #[schemars(range(min = 4, max = 10_000_000))]
    pub vocab_size: usize,
    /// Whether source and target share one vocabulary.
    pub joint: bool,
    /// Pairs of symbols (bpe), words (word) or characters (char) that occur less often than this do not
    /// become tokens. Not for unigram.
    pub min_frequency: u64,
    /// Whether text is converted to lower case. Translations are then in lower case too.
    pub lowercase: bool,
    /// bpe and unigram: whether punctuation and symbols are never part of a token with letters or digits, so that "house"
    /// is the same token in "house" and in "house,".
    pub split_punctuation: bool,
    /// bpe: whether characters that are not in the vocabulary are split into bytes instead of becoming `<unk>`. 256 of
    /// the tokens are then bytes.
    pub byte_fallback: bool,
    /// The tokenizer is trained on at most this many pairs, drawn from all corpora by a hash of their place. Fewer if
    /// they have more than 128 MiB of text.
    #[schemars(range(min = 1))]
    pub sample: usize,
    /// A tokenizer.json of Hugging Face or a model of SentencePiece (.model, .spm) to use instead of training
    /// one: a path if both sides share it, or { source = "a.json", target = "b.json" }. The other keys, except for
    /// `add_tokens`, must then be left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<TokenizerFiles>,
    /// New words or language tags, such as ">>de<<". Each becomes one token of both sides, in addition to `vocab_size`.
    /// The ids of other tokens do not change, except for `<pad>`, which is always the last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub add_tokens: Vec<String>,
}

/// The kind of tokenizer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TokenizerKind {
    /// Byte-pair encoding: starting with characters, the most frequent pair of symbols is merged
    /// repeatedly. Training is deterministic.
    #[default]
    Bpe,
    /// A unigram language model over subwords. Training is not deterministic: the same text may give
    /// slightly different tokens.
    Unigram,
    /// The most frequent words, separated by white space.
    Word,
    /// Characters, including spaces.
    Char,
}

/// Tokenizer files to use instead of training.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum TokenizerFiles {
    /// One for both sides.
    Joint(PathBuf),
    /// One for each side.
    Separate(FilePair),
}

impl TokenizerConfig {
    /// Checks every value.
    pub fn validate(&self) -> Result<()> {
        check_ranges(self, "data.tokenizer")?;
        if self.byte_fallback && self.kind != TokenizerKind::Bpe {
            return Err(ConfigError::new(
                "data.tokenizer.byte_fallback",
                "belongs to kind = \"bpe\"",
                "leave it out, or set data.tokenizer.kind = \"bpe\"",
            )
            .into());
        }
        if self.byte_fallback && self.file.is_none() && self.vocab_size < WITH_BYTES {
            return Err(ConfigError::new(
                "data.tokenizer.vocab_size",
                format!(
                    "is {}, but with byte_fallback it must be at least {WITH_BYTES}",
                    self.vocab_size
                ),
                "raise it: 256 tokens are bytes, and 3 are </s>, <unk> and <pad>",
            )
            .into());
        }
        Ok(())
    }

    /// Whether both sides have one vocabulary.
    pub fn is_joint(&self) -> bool {
        match &self.file {
            None => self.joint,
            Some(TokenizerFiles::Joint(_)) => true,
            Some(TokenizerFiles::Separate(_)) => false,
        }
    }

    /// Checks that the files exist, without reading them.
    pub fn check_files(&self) -> Result<()> {
        let files = match &self.file {
            None => vec![],
            Some(TokenizerFiles::Joint(path)) => vec![path],
            Some(TokenizerFiles::Separate(pair)) => vec![&pair.source, &pair.target],
        };
        for path in files {
            if !exists(path)? {
                return Err(Error::MissingFile {
                    path: path.clone(),
                    tried: Vec::new(),
                });
            }
        }
        Ok(())
    }
}

impl Default for TokenizerConfig {
    fn default() -> Self {
        Self {
            kind: TokenizerKind::Bpe,
            vocab_size: 8000,
            joint: true,
            min_frequency: 2,
            lowercase: false,
            split_punctuation: true,
            byte_fallback: false,
            sample: 1_000_000,
            file: None,
            add_tokens: Vec::new(),
        }
    }
}

impl<'de> Deserialize<'de> for TokenizerFiles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct FilesVisitor;
        impl<'de> Visitor<'de> for FilesVisitor {
            type Value = TokenizerFiles;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a path such as \"tokenizer.json\" or a table { source = \"…\", target = \"…\" }")
            }

            fn visit_str<E: de::Error>(self, path: &str) -> std::result::Result<Self::Value, E> {
                Ok(TokenizerFiles::Joint(path.into()))
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                map: A,
            ) -> std::result::Result<Self::Value, A::Error> {
                FilePair::deserialize(MapAccessDeserializer::new(map)).map(TokenizerFiles::Separate)
            }
        }
        deserializer.deserialize_any(FilesVisitor)
    }
}
