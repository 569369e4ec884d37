//! What a check found, for a person and for a machine.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use attend_data::{Counts, Error as DataError, Reason, SourceKind};
use serde::Serialize;

use super::histogram::Histogram;
use crate::{Error, MemorySize, Result};

/// The result of [`check`](super::check).
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// What keeps training from starting.
    pub problems: Vec<Problem>,
    /// Lines that cannot be read.
    pub bad_lines: u64,
    /// Pairs of the training data whose source or target is in the validation or the test data.
    pub overlap: BTreeMap<&'static str, u64>,
    pub training: Vec<CorpusReport>,
    pub validation: Option<CorpusReport>,
    pub stages: Vec<Stage>,
    /// Tokens of the source's and the target's vocabulary.
    pub vocabulary: (usize, usize),
    /// Parameters by part of the model.
    pub parameters: BTreeMap<String, u64>,
    /// Bytes at the peak of training, by estimate.
    pub memory: u64,
    pub timing: Option<Timing>,
    pub cache: PathBuf,
    /// Examples of dropped pairs.
    pub dropped: Vec<Dropped>,
}

/// One thing that keeps training from starting.
#[derive(Debug, Serialize)]
pub struct Problem {
    pub message: String,
    pub hint: Option<String>,
}

/// One corpus, as it is trained on.
#[derive(Debug, Serialize)]
pub struct CorpusReport {
    pub name: String,
    pub files: Vec<PathBuf>,
    pub counts: Counts,
    /// What the sources are: a picture counts as a token, and so does a row of features.
    pub source_kind: SourceKind,
    pub source_tokens: u64,
    pub target_tokens: u64,
    /// Shares of unknown tokens.
    pub source_unknown: f64,
    pub target_unknown: f64,
    pub source_lengths: Histogram,
    pub target_lengths: Histogram,
}

/// A stage of training, in which the same corpora are used.
#[derive(Debug, Serialize)]
pub struct Stage {
    pub from_step: u64,
    /// Pairs of an epoch.
    pub pairs: u64,
    /// Batches of an epoch.
    pub batches: u64,
}

/// The speed of a few updates.
#[derive(Debug, Serialize)]
pub struct Timing {
    /// Target tokens per second.
    pub tokens_per_second: f64,
    pub seconds_per_epoch: f64,
    pub pairs_per_epoch: u64,
}

/// A pair that was dropped.
#[derive(Debug, Serialize)]
pub struct Dropped {
    pub reason: Reason,
    pub file: PathBuf,
    pub line: Option<u64>,
    pub source: String,
    pub target: String,
}

impl Problem {
    pub(super) fn of(error: &Error) -> Self {
        Self {
            message: error.to_string(),
            hint: error.hint(),
        }
    }

    /// A problem of a file. The error names it, unless it is of a library.
    pub(super) fn of_data(file: &Path, error: &DataError) -> Self {
        let message = error.to_string();
        let file = file.display().to_string();
        Self {
            message: match message.contains(&file) || error.is_bad_line() {
                true => message,
                false => format!("{file}: {message}"),
            },
            hint: error.hint(),
        }
    }
}

impl Report {
    /// Whether training could start.
    pub fn could_start(&self) -> bool {
        self.problems.is_empty()
    }

    pub(super) fn note<T>(&mut self, result: Result<T>) {
        if let Err(error) = result {
            self.problems.push(Problem::of(&error));
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for corpus in self.training.iter().chain(&self.validation) {
            write!(f, "{corpus}")?;
        }
        for (name, pairs) in &self.overlap {
            writeln!(
                f,
                "overlap: of the pairs that were read, {pairs} have a sentence of the {name} data"
            )?;
        }
        if self.bad_lines > 0 {
            writeln!(f, "lines that cannot be read: {}", self.bad_lines)?;
        }
        for dropped in &self.dropped {
            write!(f, "{dropped}")?;
        }
        for stage in &self.stages {
            let Stage {
                from_step,
                pairs,
                batches,
            } = stage;
            writeln!(
                f,
                "from step {from_step}: {pairs} pairs, {batches} batches an epoch"
            )?;
        }
        if !self.parameters.is_empty() {
            let (source, target) = self.vocabulary;
            writeln!(f, "vocabulary: {source} source and {target} target tokens")?;
            let parts = self
                .parameters
                .iter()
                .map(|(part, n)| format!("{part} {n}"));
            let parts: Vec<String> = parts.collect();
            let all: u64 = self.parameters.values().sum();
            writeln!(f, "parameters: {all} ({})", parts.join(", "))?;
            writeln!(
                f,
                "memory: about {} at the peak",
                MemorySize(self.memory).rounded()
            )?;
            writeln!(f, "cache: {}", self.cache.display())?;
        }
        if let Some(timing) = &self.timing {
            let (speed, epoch) = (timing.tokens_per_second, timing.seconds_per_epoch);
            writeln!(
                f,
                "speed: {speed:.0} target tokens a second, {} an epoch",
                duration(epoch)
            )?;
        }
        for Problem { message, hint } in &self.problems {
            writeln!(f, "problem: {message}")?;
            if let Some(hint) = hint {
                writeln!(f, "  hint: {hint}")?;
            }
        }
        f.write_str(match self.could_start() {
            true => "training can start",
            false => "training cannot start",
        })
    }
}

impl fmt::Display for CorpusReport {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(f, "{}", self.name)?;
        writeln!(f, "  {}", self.counts)?;
        for (side, tokens, unknown, lengths) in [
            (
                "source",
                self.source_tokens,
                self.source_unknown,
                &self.source_lengths,
            ),
            (
                "target",
                self.target_tokens,
                self.target_unknown,
                &self.target_lengths,
            ),
        ] {
            match self.source_kind {
                SourceKind::Pictures if side == "source" => {
                    writeln!(f, "  source: {tokens} pictures, one for each pair")?;
                    continue;
                }
                SourceKind::Features if side == "source" => {
                    writeln!(f, "  source: {tokens} rows of features; by length:")?;
                }
                _ => {
                    let unknown = 100.0 * unknown;
                    writeln!(
                        f,
                        "  {side}: {tokens} tokens, {unknown:.3}% unknown; by length:"
                    )?;
                }
            }
            write!(f, "{lengths}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let line = self.line.map(|line| format!(":{line}")).unwrap_or_default();
        writeln!(f, "dropped, {}: {}{line}", self.reason, self.file.display())?;
        writeln!(f, "  {}", self.source)?;
        match self.target.is_empty() {
            true => Ok(()),
            false => writeln!(f, "  {}", self.target),
        }
    }
}

/// Hours, minutes or seconds.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => format!("{s:.1} s"),
        s if s < 6000.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}
