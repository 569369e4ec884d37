//! What a run reports, for TensorBoard: a file of records beside `metrics.jsonl`, made from its lines.
//!
//! | file | contents |
//! |---|---|
//! | `message` | what a record holds |
//! | `summary` | an event as a record |
//! | `framing` | how records lie in a file |

mod framing;
mod message;
mod summary;

use std::path::PathBuf;

use attend_infer::run::{Event, EventLog, RunFolder};
use prost::Message;

use crate::Result;
use crate::storage::{self, Journal};
use message::{Record, SessionLog};

/// Writes a run's file for TensorBoard.
///
/// The file is made from the log whenever a run is opened, so that it has what the log has and nothing of the steps
/// that the log has dropped. It then has a new name: a TensorBoard that is running would miss that a file has become
/// shorter.
pub(crate) struct TensorBoard {
    run: RunFolder,
    number: u64,
    /// `None` until the file exists.
    journal: Option<Journal>,
    /// Whether there may be files before this one.
    others: bool,
    /// What the file begins with, until it exists.
    content: Vec<u8>,
}

impl TensorBoard {
    /// A file with the events of a log, which is yet to be written. `now` is in seconds since 1970-01-01.
    pub(crate) fn of(run: &RunFolder, log: &EventLog, now: f64) -> Result<Self> {
        let last = run.event_files()?.last().copied();
        Ok(Self {
            run: run.clone(),
            number: last.map_or(0, |last| last.saturating_add(1)),
            journal: None,
            others: true,
            content: content(log, now),
        })
    }

    /// Writes the file, if that is still to be done, and removes the files before it.
    pub(crate) fn write(&mut self) -> Result<()> {
        if self.journal.is_none() {
            let path = self.path();
            storage::write_file(&path, &self.content)?;
            self.journal = Some(Journal::open(&path)?);
            self.content = Vec::new();
        }
        if self.others {
            remove(&self.run, Some(self.number))?;
            self.others = false;
        }
        Ok(())
    }

    /// Appends an event. If that fails, it is tried again with the next one.
    pub(crate) fn event(&mut self, event: &Event, time: f64) -> Result<()> {
        let mut bytes = Vec::new();
        push(&summary::record(event, time), &mut bytes);
        match &mut self.journal {
            Some(journal) => journal.append_record(&bytes)?,
            None => self.content.extend(bytes),
        }
        self.write()
    }

    fn path(&self) -> PathBuf {
        self.run.event_file_path(self.number)
    }
}

/// Removes a run's files for TensorBoard, but for the one with this number.
pub(crate) fn remove(run: &RunFolder, except: Option<u64>) -> Result<()> {
    for number in run.event_files()? {
        if Some(number) != except {
            storage::remove(&run.event_file_path(number))?;
        }
    }
    Ok(())
}

/// The file with the events of a log.
fn content(log: &EventLog, now: f64) -> Vec<u8> {
    let time = |line: &attend_infer::run::Line| line.header().ok()?.time;
    let mut wall_time = log.lines().find_map(|line| time(&line)).unwrap_or(now);
    let version = Record {
        wall_time,
        file_version: Some("brain.Event:2".into()),
        ..Record::default()
    };
    let start = Record {
        wall_time,
        session_log: Some(SessionLog {
            status: SessionLog::START,
        }),
        ..Record::default()
    };
    let mut bytes = Vec::new();
    push(&version, &mut bytes);
    push(&start, &mut bytes);
    for line in log.lines() {
        wall_time = time(&line).unwrap_or(wall_time);
        if let Ok(event) = line.event() {
            push(&summary::record(&event, wall_time), &mut bytes);
        }
    }
    bytes
}

fn push(record: &Record, bytes: &mut Vec<u8>) {
    framing::push(&record.encode_to_vec(), bytes);
}

#[cfg(test)]
pub(crate) mod tests;
