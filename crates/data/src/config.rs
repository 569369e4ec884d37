//! The `[data]` section of a config.

use crate::paths::exists;
use crate::{Error, FilePair, Paths, Result};
use attend_config::{ConfigError, check_ranges};
use schemars::JsonSchema;
use serde::de::{self, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::path::PathBuf;

/// `[data]`: the parallel text to train on, and how it is batched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataConfig {
    /// The source language, a tag such as "en". It is also the file extension after a prefix.
    pub source: String,
    /// The target language, a tag such as "de". It is also the file extension after a prefix.
    pub target: String,
    /// The training data: a prefix such as "data/train", to which ".en" and ".de" (or ".en.gz" and
    /// ".de.gz") are added, or { source = "a.txt", target = "b.txt" }, or a list of these.
    pub train: Paths,
    /// The validation data, in the same form as `train`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid: Option<Paths>,
    /// The test data, which is translated and scored after training. It has the same form as `train`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<Paths>,
    /// The tokenizer.
    #[serde(default)]
    pub tokenizer: TokenizerConfig,
    /// Batch size: the maximum number of source tokens, and of target tokens, including `</s>`. A pair
    /// that is longer is a batch of its own.
    #[serde(default = "default_batch_tokens")]
    #[schemars(range(min = 1))]
    pub batch_tokens: usize,
    /// Training pairs with more tokens than this on either side, including `</s>`, are skipped. Their
    /// number is reported. At least 2: one token and `</s>`.
    #[serde(default = "default_max_length")]
    #[schemars(range(min = 2))]
    pub max_length: usize,
}

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
    /// A tokenizer.json of Hugging Face or a model of SentencePiece (.model, .spm) to use instead of training
    /// one: a path if both sides share it, or { source = "a.json", target = "b.json" }. The other keys must
    /// then be left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<TokenizerFiles>,
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

impl DataConfig {
    /// A config for these languages and this training data, with defaults for the rest.
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

    /// Checks every value. [`DataConfig::check_files`] checks that the files exist.
    pub fn validate(&self) -> Result<()> {
        check_ranges(self, "data")?;
        for (key, tag) in [("data.source", &self.source), ("data.target", &self.target)] {
            if tag.trim().is_empty() {
                let hint = "give a language tag, such as \"en\"";
                return Err(ConfigError::new(key, "is empty", hint).into());
            }
        }
        if self.source == self.target {
            return Err(ConfigError::new(
                "data.target",
                format!("is \"{}\", the same as data.source", self.target),
                "give the two sides different tags, such as \"en\" and \"de\"",
            )
            .into());
        }
        Ok(())
    }

    /// Checks that all files exist, without reading them.
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
        Ok(check_ranges(self, "data.tokenizer")?)
    }

    /// Whether both sides have one vocabulary.
    pub fn is_joint(&self) -> bool {
        match &self.file {
            None => self.joint,
            Some(TokenizerFiles::Joint(_)) => true,
            Some(TokenizerFiles::Separate(_)) => false,
        }
    }

    fn check_files(&self) -> Result<()> {
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
