use attend_cli::Bars;
use attend_data::{Corpus, Paths};

use crate::{Config, Result, local};

/// The text that a run trains and validates on.
pub(crate) struct Corpora {
    pub(crate) training: Corpus,
    pub(crate) validation: Option<Corpus>,
}

impl Corpora {
    pub(crate) fn read(config: &Config) -> Result<Self> {
        Ok(Self {
            training: read(config, &config.data.train)?,
            validation: read_if_any(config, config.data.valid.as_ref())?,
        })
    }
}

/// The test set, if the config names one.
pub(crate) fn test_set(config: &Config) -> Result<Option<Corpus>> {
    read_if_any(config, config.data.test.as_ref())
}

fn read_if_any(config: &Config, paths: Option<&Paths>) -> Result<Option<Corpus>> {
    paths.map(|paths| read(config, paths)).transpose()
}

fn read(config: &Config, paths: &Paths) -> Result<Corpus> {
    let (source, target) = (&config.data.source, &config.data.target);
    let paths = local::all(paths, source, target)?;
    Ok(Corpus::read(&paths, source, target, &Bars)?)
}
