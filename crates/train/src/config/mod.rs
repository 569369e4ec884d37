//! The config of a run: one TOML file.

mod added;
mod document;
mod effect;
mod overrides;
pub(crate) mod renamed;
mod train;

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use attend_config::ConfigError;
use attend_data::{CorpusConfig, DataConfig, SourceKind};
use attend_infer::DecodeConfig;
use attend_model::ModelConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Table;

pub use train::{AdamConfig, Metric, OnSaveError, TrainConfig};

use crate::toml_error::Place;
use crate::{Error, Result, init};
use document::Document;
use overrides::Override;

/// The config of a run: the data, the model, how it is trained and how it translates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The seed of all random numbers of the run.
    #[serde(default = "one")]
    pub seed: u64,
    /// The folder that the run writes.
    pub out: PathBuf,
    /// The parallel text to train on, and how it is batched.
    pub data: DataConfig,
    /// The model.
    #[serde(default)]
    pub model: ModelConfig,
    /// How the model is trained.
    #[serde(default)]
    pub train: TrainConfig,
    /// How the model translates.
    #[serde(default)]
    pub decode: DecodeConfig,
}

fn one() -> u64 {
    1
}

impl Config {
    /// Reads a config that a user wrote, and applies `key=value` overrides in order.
    ///
    /// A key that has no effect is an error, even if it holds the default. A key with an old name is
    /// understood, with a warning. With `train.init`, keys of [model] and [decode] that are not written have the
    /// values of that model. Whether the other files exist that the config names is not checked here.
    pub fn read(path: &Path, overrides: &[String]) -> Result<Self> {
        let (text, name) = read_text(path)?;
        let config = Self::parse(&text, &name, overrides)?;
        match &config.train.init {
            Some(init) => {
                let file = Document::parse(&text, Place::File(&name))?;
                let overrides = Override::parse_all(overrides)?;
                let config = overrides::merge(&file, &overrides, &init::settings(init)?)?;
                config.validate()?;
                config.check_source()?;
                Ok(config)
            }
            None => Ok(config),
        }
    }

    /// Parses the text of such a file, without what it leaves to `train.init`. `name` is the file's, for errors.
    pub fn parse(text: &str, name: &str, overrides: &[String]) -> Result<Self> {
        let file = Document::parse(text, Place::File(name))?;
        file.warn_of_old_names();
        let overrides = Override::parse_all(overrides)?;
        let config = overrides::merge(&file, &overrides, &Table::new())?;
        effect::check(&config, &file, &overrides)?;
        config.validate()?;
        Ok(config)
    }

    /// Reads the `config.toml` of a run, and applies overrides in order.
    ///
    /// Keys without effect are accepted, because earlier versions wrote all of them, and old names give no
    /// warning.
    pub fn read_run(path: &Path, overrides: &[String]) -> Result<Self> {
        // Unlike a user's config, it is never a pipe, which could be waited for without end.
        if std::fs::metadata(path).is_ok_and(|data| !data.is_file()) {
            return Err(Error::Read {
                path: path.to_path_buf(),
                source: io::Error::other("not a regular file"),
            });
        }
        let (text, name) = read_text(path)?;
        let file = Document::parse_saved(&text, Place::File(&name))?;
        let config = overrides::merge(&file, &Override::parse_all(overrides)?, &Table::new())?;
        config.validate()?;
        Ok(config)
    }

    /// Parses the `config.toml` of a checkpoint. `name` is the file's, for errors.
    pub fn parse_run(text: &str, name: &str) -> Result<Self> {
        Document::parse_saved(text, Place::File(name))?.read()
    }

    /// The same with other training data.
    pub(crate) fn with_corpora(&self, corpora: Vec<CorpusConfig>) -> Result<Self> {
        let mut config = self.clone();
        config.data.train = None;
        config.data.corpora = corpora;
        config.validate()?;
        Ok(config)
    }

    /// The config as TOML, with all defaults filled in, without the keys that have no effect.
    pub fn to_toml(&self) -> String {
        effect::remove_unused(self, &self.to_full_toml())
    }

    /// The same with the keys that have no effect.
    pub(crate) fn to_full_toml(&self) -> String {
        toml::to_string(self).expect("a config is always valid TOML")
    }

    /// The JSON schema of config files, for editors.
    pub fn schema() -> String {
        let schema = attend_config::schema::<Config>();
        serde_json::to_string_pretty(&schema).expect("a schema is always valid JSON")
    }

    fn validate(&self) -> Result<()> {
        self.data.validate()?;
        self.model.validate()?;
        // The model and the vocabulary of `train.init` are known when it is opened.
        if self.train.init.is_none() {
            self.check_source()?;
            self.model.check_tie(self.data.is_joint())?;
        }
        self.decode.validate()?;
        self.train.validate()?;
        if self.out.as_os_str().is_empty() {
            let hint = "name the folder that the run writes, such as runs/mine";
            return Err(ConfigError::new("out", "is empty", hint).into());
        }
        if self.data.valid.is_none() {
            for (key, needs_it) in [
                ("train.patience", self.train.patience.is_some()),
                ("train.metric", self.train.metric != Metric::Loss),
            ] {
                if needs_it {
                    let (message, hint) = (
                        "needs validation data, but data.valid is not set",
                        "set data.valid, or leave the key out",
                    );
                    return Err(ConfigError::new(key, message, hint).into());
                }
            }
        }
        Ok(())
    }

    /// Checks that the data has what the model reads.
    fn check_source(&self) -> Result<()> {
        let (given, read) = (self.data.source_kind, SourceKind::of(self.model.source()));
        if given == read {
            return Ok(());
        }
        let hint = match (given, read) {
            (SourceKind::Text, read) => format!(
                "set data.source_kind = \"{read}\", and let the source column hold the paths of files; or give a \
                 model that reads text, such as [model.transformer]"
            ),
            (_, SourceKind::Text) => {
                "leave data.source_kind out, or give a model that does not read text: \
                                      [model.caption]"
                    .into()
            }
            (SourceKind::Pictures, _) => {
                "give [model.caption] a `picture` in place of `features`, or set \
                                          data.source_kind = \"features\""
                    .into()
            }
            (SourceKind::Features, _) => {
                "give [model.caption] `features` in place of a `picture`, or set \
                                          data.source_kind = \"pictures\""
                    .into()
            }
        };
        let message = format!("is \"{given}\", but the model reads {read}");
        Err(ConfigError::new("data.source_kind", message, hint).into())
    }
}

/// The text of a file, and its name for errors.
fn read_text(path: &Path) -> Result<(String, String)> {
    const MAX_BYTES: u64 = 1 << 24;
    let read = || {
        let mut text = String::new();
        let file = std::fs::File::open(path)?;
        if file.take(MAX_BYTES + 1).read_to_string(&mut text)? as u64 > MAX_BYTES {
            return Err(io::Error::other("it is too large to be a config"));
        }
        Ok(text)
    };
    let text = read().map_err(|source| Error::Read {
        path: path.to_path_buf(),
        source,
    })?;
    Ok((text, path.display().to_string()))
}
