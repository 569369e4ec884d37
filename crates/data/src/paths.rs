//! How a config names the files of a corpus.

use crate::compression::Compression;
use schemars::JsonSchema;
use serde::de::{self, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

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
    /// A prefix such as "data/train", to which ".en" and ".de" (or ".en.gz" and so on) are added.
    Prefix(PathBuf),
    /// Both file names.
    Files(FilePair),
    /// Files that hold both sides.
    Table(Table),
}

/// Files that hold both sides of a corpus, or prefixes of parallel text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// A path, a pattern such as "news/*.jsonl.zst", or a list of these.
    pub path: Patterns,
    /// The source: a column's number or name, a field such as "translation.en", or a language.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Column>,
    /// The target, in the same form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Column>,
    /// The format, if the names of the files do not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// Whether the first line of a TSV file has the names of the columns.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub header: bool,
}

/// One path or pattern, or several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a path or a list of paths")]
pub enum Patterns {
    /// One.
    One(PathBuf),
    /// Several, which are read in order.
    Many(Vec<PathBuf>),
}

/// Which part of a record is a side of the pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a column's number from 0, or a name")]
pub enum Column {
    /// The number of a column, from 0.
    Number(usize),
    /// The name of a column, a field such as "translation.en", or a language.
    Name(String),
}

/// The format of a corpus file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Two files, line by line.
    Text,
    /// Columns that are separated by tabs, without quoting.
    Tsv,
    /// One JSON object on each line.
    Jsonl,
    /// Apache Parquet.
    Parquet,
    /// Translation memories (TMX).
    Tmx,
}

/// A source file, and a target file with its translation line by line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilePair {
    /// The file in the source language, plain or compressed.
    pub source: PathBuf,
    /// The file in the target language, plain or compressed.
    pub target: PathBuf,
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

impl Patterns {
    /// The files of a folder whose names match a pattern.
    pub fn in_folder(folder: &Path, names: &str) -> Self {
        let folder = glob::Pattern::escape(&folder.to_string_lossy());
        Self::One(Path::new(&folder).join(names))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Path> {
        let all = match self {
            Self::One(path) => std::slice::from_ref(path),
            Self::Many(paths) => paths,
        };
        all.iter().map(PathBuf::as_path)
    }
}

impl Format {
    /// The format that a file's name tells. Text has no extension of its own.
    pub fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let is_compression = |extension: &&str| Compression::EXTENSIONS.contains(extension);
        let mut extensions = name.rsplit('.').skip_while(is_compression);
        let extension = extensions.next()?;
        extensions.next()?; // what comes before the dot
        match extension {
            "tsv" | "tab" => Some(Self::Tsv),
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            "parquet" => Some(Self::Parquet),
            "tmx" => Some(Self::Tmx),
            _ => None,
        }
    }

    /// How such a file is named in a config.
    pub(crate) fn example(self, path: &Path) -> String {
        let path = path.display();
        match self {
            Self::Tsv => format!("{{ path = \"{path}\", source = 0, target = 1 }}"),
            _ => format!("{{ path = \"{path}\" }}"),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "parallel text",
            Self::Tsv => "TSV",
            Self::Jsonl => "JSON lines",
            Self::Parquet => "Parquet",
            Self::Tmx => "TMX",
        })
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
        let table: AnyTable = Deserialize::deserialize(MapAccessDeserializer::new(map))?;
        table.into_pair().map_err(de::Error::custom)
    }
}

/// A table of either kind, which differ by `path`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnyTable {
    path: Option<Patterns>,
    source: Option<Column>,
    target: Option<Column>,
    format: Option<Format>,
    #[serde(default)]
    header: bool,
}

impl AnyTable {
    fn into_pair(self) -> std::result::Result<PathPair, String> {
        let Self {
            path,
            source,
            target,
            format,
            header,
        } = self;
        if let Some(path) = path {
            return Ok(PathPair::Table(Table {
                path,
                source,
                target,
                format,
                header,
            }));
        }
        if format.is_some() || header {
            return Err("missing field `path`, to which `format` and `header` belong".into());
        }
        let file = |side: Option<Column>, key: &str| match side {
            Some(Column::Name(name)) => Ok(PathBuf::from(name)),
            Some(Column::Number(_)) => {
                Err("missing field `path`: the file with these columns".into())
            }
            None => Err(format!("missing field `{key}`")),
        };
        Ok(PathPair::Files(FilePair {
            source: file(source, "source")?,
            target: file(target, "target")?,
        }))
    }
}
