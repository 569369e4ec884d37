//! The `[data]` section of a config.

mod augment;
mod clean;
mod corpus;
mod source_kind;
mod tokenizer;

pub use augment::AugmentConfig;
pub use clean::{CleanConfig, Normalization};
pub use corpus::CorpusConfig;
pub(crate) use corpus::stage_starts;
pub use source_kind::SourceKind;
pub use tokenizer::{TokenizerConfig, TokenizerFiles, TokenizerKind};

use crate::{Paths, Result};
use attend_config::{ConfigError, check_ranges};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// `[data]`: the parallel text to train on, and how it is batched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataConfig {
    /// The source language, a tag such as "en". It is also the file extension after a prefix.
    /// If the source is not text, a name such as "picture".
    pub source: String,
    /// The target language, a tag such as "de". It is also the file extension after a prefix.
    pub target: String,
    /// What the sources are. If they are not text, each is the path of a file, relative to the folder of the file
    /// that names it.
    #[serde(default, skip_serializing_if = "SourceKind::is_text")]
    pub source_kind: SourceKind,
    /// The training data: a prefix such as "data/train", to which ".en" and ".de" (or ".en.gz" and so on) are
    /// added, { source = "a.txt", target = "b.txt" }, { path = "x.tsv", source = 0, target = 1 }, or a list of
    /// these. `corpora` can take its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train: Option<Paths>,
    /// The validation data, in the same form as `train`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid: Option<Paths>,
    /// The test data, which is translated and scored after training. It has the same form as `train`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<Paths>,
    /// The folder for the token ids of the corpora [default: attend-cache, beside the run's folder].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<PathBuf>,
    /// What is done about lines that cannot be read.
    #[serde(default)]
    pub bad_lines: BadLines,
    /// Batch size: the maximum number of source tokens, and of target tokens, including `</s>`. A pair
    /// that is longer is a batch of its own. A picture counts as one source token, and so does a row of features.
    #[serde(default = "default_batch_tokens")]
    #[schemars(range(min = 1))]
    pub batch_tokens: usize,
    /// Training pairs with more tokens than this on either side, including `</s>`, are skipped. Their
    /// number is reported. At least 2: one token and `</s>`. A row of features counts as a token.
    #[serde(default = "default_max_length")]
    #[schemars(range(min = 2))]
    pub max_length: usize,
    /// The tokenizer.
    #[serde(default)]
    pub tokenizer: TokenizerConfig,
    /// Which pairs are dropped.
    #[serde(default)]
    pub clean: CleanConfig,
    /// Random changes of the training text.
    #[serde(default)]
    pub augment: AugmentConfig,
    /// Several corpora, mixed. They take the place of `train`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub corpora: Vec<CorpusConfig>,
}

/// What is done about lines that cannot be read: they are not UTF-8, are too long, have a NUL character, or lack the
/// field that is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BadLines {
    /// They are an error.
    #[default]
    Error,
    /// They are dropped and counted.
    Skip,
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
            source_kind: SourceKind::default(),
            train: Some(train.into()),
            valid: None,
            test: None,
            cache: None,
            bad_lines: BadLines::default(),
            batch_tokens: default_batch_tokens(),
            max_length: default_max_length(),
            tokenizer: TokenizerConfig::default(),
            clean: CleanConfig::default(),
            augment: AugmentConfig::default(),
            corpora: Vec::new(),
        }
    }

    /// The corpora of the training data: where their text is, and their shares.
    pub fn training(&self) -> Vec<(Paths, CorpusConfig)> {
        match &self.train {
            Some(train) => vec![(train.clone(), CorpusConfig::default())],
            None => {
                let corpora = self.corpora.iter();
                corpora.map(|c| (c.paths(), c.clone())).collect()
            }
        }
    }

    /// The training data as entries of `corpora`, also if it is given as `train`.
    pub fn as_corpora(&self) -> Vec<CorpusConfig> {
        let pairs = match &self.train {
            None => return self.corpora.clone(),
            Some(Paths::One(pair)) => std::slice::from_ref(pair),
            Some(Paths::Many(pairs)) => pairs,
        };
        pairs.iter().map(CorpusConfig::of).collect()
    }

    /// Checks every value.
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
        match (&self.train, &self.corpora[..]) {
            (None, []) => {
                let hint = "give a prefix such as \"data/train\", or [[data.corpora]]";
                return Err(ConfigError::new("data.train", "is missing", hint).into());
            }
            (Some(_), [_, ..]) => {
                let message = "is set, and data.train too";
                let hint = "make data.train one more entry of [[data.corpora]]";
                return Err(ConfigError::new("data.corpora", message, hint).into());
            }
            _ => {}
        }
        if self
            .cache
            .as_ref()
            .is_some_and(|cache| cache.as_os_str().is_empty())
        {
            let hint = "give a folder, or leave it out: the cache is then beside the run";
            return Err(ConfigError::new("data.cache", "is empty", hint).into());
        }
        self.tokenizer.validate()?;
        self.clean.validate()?;
        self.augment.validate()?;
        corpus::validate(&self.corpora)?;
        self.source_kind.validate(self)?;
        Ok(())
    }

    /// Whether both sides have one vocabulary.
    pub fn is_joint(&self) -> bool {
        self.source_kind.is_text() && self.tokenizer.is_joint()
    }
}

fn default_batch_tokens() -> usize {
    4096
}

fn default_max_length() -> usize {
    256
}
