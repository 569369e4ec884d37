//! Finding the files that a config names.

use crate::{Error, Result};
use schemars::JsonSchema;
use serde::de::{self, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize};
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

/// The files of a parallel corpus: one pair, or several that are read in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Paths {
    /// One pair of files.
    One(PathPair),
    /// Several pairs of files, which are one corpus.
    Many(Vec<PathPair>),
}

/// One pair of files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum PathPair {
    /// A prefix such as "data/train", to which ".en" and ".de" (or ".en.gz" and ".de.gz") are
    /// added.
    Prefix(PathBuf),
    /// Both file names.
    Files(FilePair),
}

/// A source file, and a target file with its translation line by line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilePair {
    /// The file in the source language, plain or gzip.
    pub source: PathBuf,
    /// The file in the target language, plain or gzip.
    pub target: PathBuf,
}

impl Paths {
    /// The files for these language tags. A file that does not exist is an error.
    pub fn resolve(&self, source: &str, target: &str) -> Result<Vec<FilePair>> {
        let pairs = match self {
            Self::One(pair) => std::slice::from_ref(pair),
            Self::Many(pairs) => pairs,
        };
        pairs
            .iter()
            .map(|pair| pair.resolve(source, target))
            .collect()
    }
}

impl PathPair {
    fn resolve(&self, source: &str, target: &str) -> Result<FilePair> {
        match self {
            Self::Prefix(prefix) => Ok(FilePair {
                source: with_language(prefix, source)?,
                target: with_language(prefix, target)?,
            }),
            Self::Files(files) => {
                for path in [&files.source, &files.target] {
                    if !exists(path)? {
                        let (path, tried) = (path.clone(), Vec::new());
                        return Err(Error::MissingFile { path, tried });
                    }
                }
                Ok(files.clone())
            }
        }
    }
}

impl From<PathBuf> for Paths {
    fn from(prefix: PathBuf) -> Self {
        Self::One(PathPair::Prefix(prefix))
    }
}

impl From<&str> for Paths {
    fn from(prefix: &str) -> Self {
        PathBuf::from(prefix).into()
    }
}

impl From<FilePair> for Paths {
    fn from(files: FilePair) -> Self {
        Self::One(PathPair::Files(files))
    }
}

/// `prefix.language`, or `prefix.language.gz` if the former does not exist. The prefix can contain dots.
fn with_language(prefix: &Path, language: &str) -> Result<PathBuf> {
    let mut name = prefix.as_os_str().to_owned();
    name.push(".");
    name.push(language);
    let plain = PathBuf::from(&name);
    name.push(".gz");
    let gzip = PathBuf::from(name);
    match (exists(&plain)?, exists(&gzip)?) {
        (true, _) => Ok(plain),
        (false, true) => Ok(gzip),
        (false, false) => Err(Error::MissingFile {
            path: plain,
            tried: vec![gzip],
        }),
    }
}

/// Whether there is such a file. A symbolic link that leads nowhere is no file; one that cannot be
/// followed is an error.
pub(crate) fn exists(path: &Path) -> Result<bool> {
    match fs::metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(Error::Io {
            path: path.into(),
            source,
        }),
    }
}

// Not derived, because the error of a derived untagged enum names neither the key nor the problem.
impl<'de> Deserialize<'de> for Paths {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct PathsVisitor;
        impl<'de> Visitor<'de> for PathsVisitor {
            type Value = Paths;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a prefix such as \"data/train\", a table { source = \"…\", target = \"…\" }, or a list of these")
            }

            fn visit_str<E: de::Error>(self, value: &str) -> std::result::Result<Paths, E> {
                PathPairVisitor.visit_str(value).map(Paths::One)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> std::result::Result<Paths, A::Error> {
                PathPairVisitor.visit_map(map).map(Paths::One)
            }

            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut seq: A,
            ) -> std::result::Result<Paths, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = seq.next_element()? {
                    pairs.push(pair);
                }
                if pairs.is_empty() {
                    return Err(de::Error::custom("the list of corpora is empty"));
                }
                Ok(Paths::Many(pairs))
            }
        }
        deserializer.deserialize_any(PathsVisitor)
    }
}

impl<'de> Deserialize<'de> for PathPair {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(PathPairVisitor)
    }
}

struct PathPairVisitor;

impl<'de> Visitor<'de> for PathPairVisitor {
    type Value = PathPair;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a prefix such as \"data/train\" or a table { source = \"…\", target = \"…\" }")
    }

    fn visit_str<E: de::Error>(self, value: &str) -> std::result::Result<PathPair, E> {
        if value.is_empty() {
            return Err(E::custom("the path is empty"));
        }
        Ok(PathPair::Prefix(value.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> std::result::Result<PathPair, A::Error> {
        FilePair::deserialize(MapAccessDeserializer::new(map)).map(PathPair::Files)
    }
}
