use std::path::PathBuf;

use attend_train::{Config, Error};

/// A config, and values that override its own.
#[derive(clap::Args)]
pub(super) struct ConfigArgs {
    /// The config, a TOML file
    pub(super) config: PathBuf,
    /// Override a value of the config, such as train.steps=500; can be given more than once
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(super) overrides: Vec<String>,
}

impl ConfigArgs {
    pub(super) fn read(&self) -> Result<Config, Error> {
        Config::read(&self.config, &self.overrides)
    }
}
