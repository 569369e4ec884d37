//! A list of runs, for `train ls`.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use attend_infer::run::{Content, Event, LockState, RunFolder};

use crate::{Config, Error, MemorySize, Result};

/// The runs in a folder, by name.
#[derive(Debug)]
pub struct Listing {
    pub folder: PathBuf,
    pub runs: Vec<RunSummary>,
}

/// What the files of a run say about it. Nothing is verified: that is what `train doctor` does.
#[derive(Debug)]
pub struct RunSummary {
    pub name: String,
    pub state: RunState,
    /// The last step in the log.
    pub step: u64,
    /// The step at which training ends at the latest, if the config can be read.
    pub steps: Option<u64>,
    /// The best validation, such as "BLEU 34.21".
    pub best: Option<String>,
    /// Bytes of all files.
    pub size: u64,
    /// Time since the log was written.
    pub age: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// A process is training it now.
    Running,
    /// It has been tested, or has reached its last step.
    Finished,
    /// It can be resumed.
    Stopped,
    /// It has no checkpoint.
    Empty,
}

/// Lists the runs directly below a folder, or the folder itself if it is a run.
pub fn list_runs(folder: &Path) -> Result<Listing> {
    let error = |source| Error::Read {
        path: folder.to_path_buf(),
        source,
    };
    let mut paths = Vec::new();
    if RunFolder::new(folder).content()? == Content::Run {
        paths.push(folder.to_path_buf());
    } else {
        for entry in fs::read_dir(folder).map_err(error)? {
            let path = entry.map_err(error)?.path();
            if path.is_dir() && RunFolder::new(&path).content()? == Content::Run {
                paths.push(path);
            }
        }
    }
    paths.sort();
    let runs = paths.iter().map(|path| summarize(path));
    Ok(Listing {
        folder: folder.to_path_buf(),
        runs: runs.collect::<Result<_>>()?,
    })
}

fn summarize(path: &Path) -> Result<RunSummary> {
    let run = RunFolder::new(path);
    let config = Config::read_run(&run.config_path(), &[]).ok();
    let log = run.event_log()?.unwrap_or_default();
    let step = log.last_step().unwrap_or(0);
    let steps = config.as_ref().map(|config| config.train.steps);
    let (mut best, mut tested) = (None, false);
    for event in log.events() {
        match event {
            Event::Validation(validation) if validation.best => best = Some(validation),
            Event::Test(_) => tested = true,
            _ => {}
        }
    }
    let metric = config.map(|config| config.train.metric);
    let best = best.zip(metric);
    let best = best.map(|(validation, metric)| metric.describe(metric.value(&validation)));
    let state = match run.lock() {
        LockState::Held { .. } => RunState::Running,
        LockState::Free if run.steps()?.is_empty() => RunState::Empty,
        LockState::Free if tested || steps.is_some_and(|steps| step >= steps) => RunState::Finished,
        LockState::Free => RunState::Stopped,
    };
    let written = fs::metadata(run.log_path()).and_then(|data| data.modified());
    let now = SystemTime::now();
    Ok(RunSummary {
        // A name may hold a line end or what controls a terminal.
        name: path.display().to_string().replace(char::is_control, "?"),
        state,
        step,
        steps,
        best,
        size: size(path),
        age: written
            .ok()
            .map(|time| now.duration_since(time).unwrap_or_default()),
    })
}

/// Bytes of all files below a folder. Links are not followed, and what cannot be read counts as nothing: a
/// training may be removing it.
fn size(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    let sizes = entries
        .filter_map(io::Result::ok)
        .map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() => size(&entry.path()),
            Ok(data) if data.is_file() => data.len(),
            _ => 0,
        });
    sizes.sum()
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.runs.is_empty() {
            return write!(f, "no runs in {}", self.folder.display());
        }
        let heading = ["run", "state", "step", "best", "size", "age"].map(String::from);
        let rows = self.runs.iter().map(RunSummary::cells);
        f.write_str(&table(std::iter::once(heading).chain(rows)))
    }
}

/// Rows with aligned columns.
pub(crate) fn table<const N: usize>(rows: impl Iterator<Item = [String; N]>) -> String {
    let rows: Vec<[String; N]> = rows.collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..N).filter_map(width).collect();
    let lines = rows.iter().map(|row| {
        let cells = row.iter().zip(&widths);
        let cells = cells.map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_string()
    });
    lines.collect::<Vec<_>>().join("\n")
}

impl RunSummary {
    fn cells(&self) -> [String; 6] {
        let state = match self.state {
            RunState::Running => "running",
            RunState::Finished => "finished",
            RunState::Stopped => "stopped",
            RunState::Empty => "empty",
        };
        let none = || "-".to_string();
        [
            self.name.clone(),
            state.to_string(),
            match self.steps {
                Some(steps) => format!("{}/{steps}", self.step),
                None => self.step.to_string(),
            },
            self.best.clone().unwrap_or_else(none),
            MemorySize(self.size).rounded(),
            self.age.map_or_else(none, describe_age),
        ]
    }
}

/// A duration in its largest unit.
pub(crate) fn describe_age(age: Duration) -> String {
    let seconds = age.as_secs();
    let units = [(86_400, "d"), (3_600, "h"), (60, "min")];
    let unit = units.iter().find(|(unit, _)| seconds >= *unit);
    let (unit, name) = unit.unwrap_or(&(1, "s"));
    format!("{} {name}", seconds / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_given_in_its_largest_unit() {
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (7_300, "2 h"),
            (200_000, "2 d"),
        ] {
            assert_eq!(describe_age(Duration::from_secs(seconds)), text);
        }
    }
}
