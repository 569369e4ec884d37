//! The `[data]` section of a config.

use crate::{Error, FilePair, Paths, Result};
use schemars::JsonSchema;
use serde::de::{self, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::path::PathBuf;

/// The parallel text to learn from, and how it becomes batches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataConfig {
    /// Source language: a tag such as "en", which is also the file extension after a prefix.
    pub source: String,
    /// Target language: a tag such as "de", which is also the file extension after a prefix.
    pub target: String,
    /// What to train on: a prefix such as "data/train", to which ".en" and ".de" (or ".en.gz" and
    /// ".de.gz") are added, or { source = "a.txt", target = "b.txt" }, or a list of these.
    pub train: Paths,
    /// What to validate on during training. Named like `train`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid: Option<Paths>,
    /// What to test on after training. Named like `train`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<Paths>,
    /// How text becomes tokens.
    #[serde(default)]
    pub tokenizer: TokenizerConfig,
    /// The most source tokens, and the most target tokens, in a batch. The `</s>` at the end of
    /// each sentence counts. A pair that is longer than this makes a batch of its own.
    #[serde(default = "default_batch_tokens")]
    pub batch_tokens: usize,
    /// Training pairs with more tokens than this on a side, `</s>` included, are left out,
    /// counted and reported.
    #[serde(default = "default_max_length")]
    pub max_length: usize,
}

/// How text becomes tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TokenizerConfig {
    /// What a token is.
    pub kind: TokenizerKind,
    /// Number of tokens, `</s>`, `<unk>` and `<pad>` included. A small corpus may give fewer.
    pub vocab_size: usize,
    /// Whether source and target share one vocabulary.
    pub joint: bool,
    /// A pair of symbols (bpe), a word (word) or a character (char) seen less often than this
    /// gives no token. Has no effect on unigram.
    pub min_frequency: u64,
    /// Whether text is put in lower case first. What is then translated is in lower case too.
    pub lowercase: bool,
    /// A tokenizer.json to use instead of training one: a path when both sides share it, or
    /// { source = "a.json", target = "b.json" }. The other keys then have no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<TokenizerFiles>,
}

/// What a token is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TokenizerKind {
    /// Byte-pair encoding: frequent pairs of symbols merged, from characters up. Training it twice
    /// on the same text gives the same tokens.
    #[default]
    Bpe,
    /// A unigram language model over pieces of words. Training it twice on the same text may give
    /// slightly different tokens.
    Unigram,
    /// Words, as separated by white space; the most frequent ones.
    Word,
    /// Characters, spaces among them.
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

impl DataConfig {
    /// A config for these languages and this training corpus, all else at its default.
    pub fn new(
        source: impl Into<String>,
        target: impl Into<String>,
        train: impl Into<Paths>,
    ) -> Self {
        Self {
            source: source.into(),
            target: target.into(),
            train: train.into(),
            valid: None,
            test: None,
            tokenizer: TokenizerConfig::default(),
            batch_tokens: default_batch_tokens(),
            max_length: default_max_length(),
        }
    }

    /// Checks every value; [`DataConfig::check_files`] looks for the files.
    pub fn validate(&self) -> Result<()> {
        for (key, tag) in [("source", &self.source), ("target", &self.target)] {
            check(!tag.trim().is_empty(), key, "the language tag is empty")?;
        }
        check(self.batch_tokens > 0, "batch_tokens", "must be at least 1")?;
        check(
            self.max_length > 1,
            "max_length",
            "must be at least 2: one token and </s>",
        )?;
        self.tokenizer.validate()
    }

    /// Checks that every file named exists, without reading any.
    pub fn check_files(&self) -> Result<()> {
        let corpora = [Some(&self.train), self.valid.as_ref(), self.test.as_ref()];
        for paths in corpora.into_iter().flatten() {
            paths.resolve(&self.source, &self.target)?;
        }
        self.tokenizer.check_files()
    }
}

impl TokenizerConfig {
    /// Checks every value.
    pub fn validate(&self) -> Result<()> {
        check(
            (4..=10_000_000).contains(&self.vocab_size),
            "tokenizer.vocab_size",
            "must be from 4 (</s>, <unk>, <pad> and one more) to 10,000,000",
        )
    }

    fn check_files(&self) -> Result<()> {
        let files = match &self.file {
            None => vec![],
            Some(TokenizerFiles::Joint(path)) => vec![path],
            Some(TokenizerFiles::Separate(pair)) => vec![&pair.source, &pair.target],
        };
        match files.into_iter().find(|path| !path.exists()) {
            None => Ok(()),
            Some(path) => Err(Error::MissingFile {
                path: path.clone(),
                tried: Vec::new(),
            }),
        }
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
            file: None,
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

fn default_batch_tokens() -> usize {
    4096
}

fn default_max_length() -> usize {
    256
}

fn check(good: bool, key: &'static str, message: &str) -> Result<()> {
    match good {
        true => Ok(()),
        false => Err(Error::Config {
            key,
            message: message.into(),
        }),
    }
}
