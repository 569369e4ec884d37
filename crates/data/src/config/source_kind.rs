//! `data.source_kind`, and what does not go together with it.

use crate::{CorpusConfig, DataConfig, Format, PathPair, Paths, TokenizerFiles};
use attend_batch::SourceShape;
use attend_config::ConfigError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What the sources are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// Sentences.
    #[default]
    Text,
    /// Pictures: files of PNG, JPEG or SVG.
    Pictures,
    /// Rows of features: files of safetensors or npy with one matrix.
    Features,
}

impl SourceKind {
    /// The kind of the sources of a model.
    pub fn of(shape: SourceShape) -> Self {
        match shape {
            SourceShape::Text => Self::Text,
            SourceShape::Pictures(_) => Self::Pictures,
            SourceShape::Features { .. } => Self::Features,
        }
    }

    /// Whether the sources are sentences.
    pub fn is_text(&self) -> bool {
        *self == Self::Text
    }

    /// Refuses keys that belong to sources that are text.
    pub(super) fn validate(self, data: &DataConfig) -> Result<(), ConfigError> {
        if self.is_text() {
            return Ok(());
        }
        let clean = &data.clean;
        let files = &data.tokenizer.file;
        let tagged = data.corpora.iter().position(|corpus| corpus.tag.is_some());
        let tag = format!("data.corpora.{}.tag", tagged.unwrap_or(0));
        for (key, is_set) in [
            ("data.augment", data.augment.is_on()),
            ("data.clean.same", clean.same),
            ("data.clean.max_ratio", clean.max_ratio.is_some()),
            (
                "data.clean.source_scripts",
                !clean.source_scripts.is_empty(),
            ),
            (&tag, tagged.is_some()),
        ] {
            if is_set {
                let message =
                    format!("belongs to sources that are text, and data.source_kind is \"{self}\"");
                return Err(ConfigError::new(key, message, "leave it out"));
            }
        }
        if matches!(files, Some(TokenizerFiles::Separate(_))) {
            return Err(ConfigError::new(
                "data.tokenizer.file",
                format!("names a file for the source, and data.source_kind is \"{self}\""),
                "give the path of one file, which is the target's",
            ));
        }
        let corpora = data.corpora.iter().map(CorpusConfig::paths);
        let all = [&data.train, &data.valid, &data.test].into_iter().flatten();
        for paths in all.cloned().chain(corpora) {
            self.check_paths(&paths)?;
        }
        Ok(())
    }

    /// A prefix names two files of sentences, and memories have sentences.
    fn check_paths(self, paths: &Paths) -> Result<(), ConfigError> {
        let pairs = match paths {
            Paths::One(pair) => std::slice::from_ref(pair),
            Paths::Many(pairs) => pairs,
        };
        for pair in pairs {
            let format = match pair {
                PathPair::Prefix(_) => Some(Format::Text),
                PathPair::Files(_) => None,
                PathPair::Table(table) => table.format,
            };
            if let Some(format @ (Format::Text | Format::Tmx)) = format {
                return Err(ConfigError::new(
                    "data.source_kind",
                    format!("is \"{self}\", whose paths cannot be read from {format}"),
                    "give a table such as { path = \"train.tsv\", source = 0, target = 1 }, or a file of paths and a \
                     file of sentences as { source = \"…\", target = \"…\" }",
                ));
            }
        }
        Ok(())
    }
}

impl fmt::Display for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Pictures => "pictures",
            Self::Features => "features",
        })
    }
}
