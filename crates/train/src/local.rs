//! Paths of a config that are on the hub (`hf://…`), as paths of local files.

use std::path::Path;

use attend_cli::Bars;
use attend_data::{DataConfig, FilePair, PathPair, Paths, TokenizerConfig, TokenizerFiles};
use attend_infer::hub;

use crate::Result;

/// The same config with local paths only. What is on the hub is fetched.
pub(crate) fn data(config: &DataConfig) -> Result<DataConfig> {
    let (source, target) = (&*config.source, &*config.target);
    let local = |paths: &Option<Paths>| {
        paths
            .as_ref()
            .map(|paths| all(paths, source, target))
            .transpose()
    };
    Ok(DataConfig {
        train: all(&config.train, source, target)?,
        valid: local(&config.valid)?,
        test: local(&config.test)?,
        tokenizer: tokenizer(&config.tokenizer)?,
        ..config.clone()
    })
}

/// The same paths, of these languages.
pub(crate) fn all(paths: &Paths, source: &str, target: &str) -> Result<Paths> {
    Ok(match paths {
        Paths::One(one) => Paths::One(pair(one, source, target)?),
        Paths::Many(many) => {
            let pairs = many.iter().map(|one| pair(one, source, target));
            Paths::Many(pairs.collect::<Result<_>>()?)
        }
    })
}

fn pair(paths: &PathPair, source: &str, target: &str) -> Result<PathPair> {
    let prefix = match paths {
        PathPair::Prefix(prefix) => prefix,
        PathPair::Files(files) => return Ok(PathPair::Files(both(files)?)),
    };
    let file = |language: &str| hub::local_text(prefix, language, &Bars);
    Ok(match (file(source)?, file(target)?) {
        (Some(source), Some(target)) => PathPair::Files(FilePair { source, target }),
        _ => paths.clone(), // not on the hub
    })
}

/// The same settings with local files.
pub(crate) fn tokenizer(config: &TokenizerConfig) -> Result<TokenizerConfig> {
    let file = match &config.file {
        None => None,
        Some(TokenizerFiles::Joint(path)) => {
            Some(TokenizerFiles::Joint(hub::local_file(path, &Bars)?))
        }
        Some(TokenizerFiles::Separate(files)) => Some(TokenizerFiles::Separate(both(files)?)),
    };
    Ok(TokenizerConfig {
        file,
        ..config.clone()
    })
}

fn both(files: &FilePair) -> Result<FilePair> {
    let local = |path: &Path| hub::local_file(path, &Bars);
    Ok(FilePair {
        source: local(&files.source)?,
        target: local(&files.target)?,
    })
}
