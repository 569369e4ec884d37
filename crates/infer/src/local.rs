//! Paths of a config that are on the hub (`hf://…`), as paths of local files.

use std::path::Path;

use attend_data::{
    FilePair, Format, PathPair, Paths, Patterns, Progress, Table, TokenizerConfig, TokenizerFiles,
};

use crate::{Result, hub};

/// The same paths, of these languages. What is on the hub is fetched.
pub fn all(paths: &Paths, source: &str, target: &str, progress: &dyn Progress) -> Result<Paths> {
    let pairs = match paths {
        Paths::One(one) => pair(one, source, target, progress)?,
        Paths::Many(many) => {
            let pairs = many.iter().map(|one| pair(one, source, target, progress));
            pairs.collect::<Result<Vec<_>>>()?.concat()
        }
    };
    Ok(match <[PathPair; 1]>::try_from(pairs) {
        Ok([one]) => Paths::One(one),
        Err(many) => Paths::Many(many),
    })
}

fn pair(
    paths: &PathPair,
    source: &str,
    target: &str,
    progress: &dyn Progress,
) -> Result<Vec<PathPair>> {
    Ok(match paths {
        PathPair::Prefix(prefix) => vec![prefixed(prefix, source, target, progress)?],
        PathPair::Files(files) => vec![PathPair::Files(both(files, progress)?)],
        PathPair::Table(table) => {
            let mut pairs = Vec::new();
            if table.path.iter().next().is_none() {
                return Ok(vec![paths.clone()]); // an error, which `resolve` reports
            }
            for path in table.path.iter() {
                // Parallel text on the hub is found by its prefix; any other path is one file.
                let format = table.format.or(Format::of(path));
                let is_text = format.is_none_or(|format| format == Format::Text);
                pairs.push(match hub::is_remote(path) && is_text {
                    true => prefixed(path, source, target, progress)?,
                    false => PathPair::Table(Table {
                        path: Patterns::One(hub::local_file(path, progress)?),
                        ..table.clone()
                    }),
                });
            }
            pairs
        }
    })
}

fn prefixed(
    prefix: &Path,
    source: &str,
    target: &str,
    progress: &dyn Progress,
) -> Result<PathPair> {
    let file = |language: &str| hub::local_text(prefix, language, progress);
    Ok(match (file(source)?, file(target)?) {
        (Some(source), Some(target)) => PathPair::Files(FilePair { source, target }),
        _ => PathPair::Prefix(prefix.into()), // not on the hub
    })
}

/// The same settings with local files.
pub fn tokenizer(config: &TokenizerConfig, progress: &dyn Progress) -> Result<TokenizerConfig> {
    let file = match &config.file {
        None => None,
        Some(TokenizerFiles::Joint(path)) => {
            Some(TokenizerFiles::Joint(hub::local_file(path, progress)?))
        }
        Some(TokenizerFiles::Separate(files)) => {
            Some(TokenizerFiles::Separate(both(files, progress)?))
        }
    };
    Ok(TokenizerConfig {
        file,
        ..config.clone()
    })
}

fn both(files: &FilePair, progress: &dyn Progress) -> Result<FilePair> {
    let local = |path: &Path| hub::local_file(path, progress);
    Ok(FilePair {
        source: local(&files.source)?,
        target: local(&files.target)?,
    })
}
