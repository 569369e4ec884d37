//! `[[data.corpora]]`: several corpora, mixed.

use crate::{Column, FilePair, Format, PathPair, Paths, Patterns, Table};
use attend_config::ConfigError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// One corpus of the training data and its share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CorpusConfig {
    /// The files that hold both sides, or prefixes of parallel text: a path, a pattern such as "news/*.jsonl.zst",
    /// or a list of these. Without it, `source` and `target` are two files of parallel text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Patterns>,
    /// The source: a column's number or name, a field such as "translation.en", or a language. Without `path`, a
    /// file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Column>,
    /// The target, in the same form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Column>,
    /// The format of the files, if their names do not tell it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// Whether the first line of a TSV file has the names of the columns.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub header: bool,
    /// The share of this corpus among the pairs that are drawn, relative to the weights of the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000), extend("exclusiveMinimum" = 0))]
    pub weight: Option<f64>,
    /// How often an epoch goes through this corpus. Not together with weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub passes: Option<u64>,
    /// A token that is put before every source sentence, such as ">>de<<".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The first step that uses this corpus, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_step: Option<u64>,
    /// The first step that no longer uses this corpus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_step: Option<u64>,
}

impl CorpusConfig {
    /// All pairs of these files.
    pub(super) fn of(pair: &PathPair) -> Self {
        let name = |path: &Path| Some(Column::Name(path.to_string_lossy().into_owned()));
        match pair {
            PathPair::Prefix(prefix) => Self {
                path: Some(Patterns::One(prefix.clone())),
                ..Self::default()
            },
            PathPair::Files(FilePair { source, target }) => Self {
                source: name(source),
                target: name(target),
                ..Self::default()
            },
            PathPair::Table(table) => Self {
                path: Some(table.path.clone()),
                source: table.source.clone(),
                target: table.target.clone(),
                format: table.format,
                header: table.header,
                ..Self::default()
            },
        }
    }

    /// Where the text is. [`CorpusConfig::validate`] has checked that this is known.
    pub fn paths(&self) -> Paths {
        let pair = match (&self.path, &self.source, &self.target) {
            (Some(path), source, target) => PathPair::Table(Table {
                path: path.clone(),
                source: source.clone(),
                target: target.clone(),
                format: self.format,
                header: self.header,
            }),
            (None, source, target) => {
                let file = |side: &Option<Column>| match side {
                    Some(Column::Name(name)) => name.into(),
                    _ => "".into(),
                };
                PathPair::Files(FilePair {
                    source: file(source),
                    target: file(target),
                })
            }
        };
        Paths::One(pair)
    }

    /// Whether the corpus is used at this step.
    pub fn is_used_at(&self, step: u64) -> bool {
        self.from_step.is_none_or(|from| from <= step)
            && self.until_step.is_none_or(|until| step < until)
    }

    /// Checks what can be known without the other corpora. `index` is counted from 0.
    pub(super) fn validate(&self, index: usize) -> Result<(), ConfigError> {
        let refuse = |key: &str, message: &str, hint: &str| {
            let key = format!("data.corpora.{index}.{key}");
            Err(ConfigError::new(key, message, hint))
        };
        let is_file = |side: &Option<Column>| matches!(side, Some(Column::Name(_)));
        if self.path.is_none() && !(is_file(&self.source) && is_file(&self.target)) {
            return refuse(
                "path",
                "is missing",
                "give the path of a file or a prefix, or the two files of parallel text as `source` and `target`",
            );
        }
        if self.path.is_none() && (self.format.is_some() || self.header) {
            return refuse(
                "path",
                "is missing",
                "`format` and `header` belong to `path`",
            );
        }
        let (from, until) = (self.from_step.unwrap_or(0), self.until_step);
        if until.is_some_and(|until| until <= from) {
            return refuse(
                "until_step",
                "is not after from_step",
                "a corpus is used from from_step on and before until_step",
            );
        }
        match &self.tag {
            Some(tag) if tag.trim().is_empty() || tag.contains(char::is_whitespace) => {
                refuse("tag", "is not one word", "give a tag such as \">>de<<\"")
            }
            _ => Ok(()),
        }
    }
}

/// Checks the corpora together: all have weights or none, and every step has at least one.
pub(super) fn validate(corpora: &[CorpusConfig]) -> Result<(), ConfigError> {
    for (index, corpus) in corpora.iter().enumerate() {
        corpus.validate(index)?;
        if corpus.weight.is_some() && corpus.passes.is_some() {
            let key = format!("data.corpora.{index}.passes");
            let hint = "with weights, the number of passes follows; leave one of them out";
            return Err(ConfigError::new(key, "is set, and weight too", hint));
        }
        if corpus.weight.is_some() != corpora[0].weight.is_some() {
            let key = format!("data.corpora.{index}.weight");
            let message = if corpus.weight.is_some() {
                "is set, but not for all corpora"
            } else {
                "is missing, and other corpora have one"
            };
            let hint = "give all corpora a weight, or none";
            return Err(ConfigError::new(key, message, hint));
        }
    }
    for step in stage_starts(corpora) {
        if !corpora.is_empty() && !corpora.iter().any(|corpus| corpus.is_used_at(step)) {
            return Err(ConfigError::new(
                "data.corpora",
                format!("no corpus is used at step {step}"),
                "check from_step and until_step",
            ));
        }
    }
    Ok(())
}

/// The steps at which a stage begins: 0, and those at which a corpus begins or ends.
pub(crate) fn stage_starts(corpora: &[CorpusConfig]) -> Vec<u64> {
    let changes = corpora.iter().flat_map(|c| [c.from_step, c.until_step]);
    let mut starts: Vec<u64> = changes.flatten().chain([0]).collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}
