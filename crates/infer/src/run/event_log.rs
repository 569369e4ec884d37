use std::io;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::Event;
use super::times::without_times;
use crate::file::read_regular;
use crate::{Error, Result};

/// `metrics.jsonl`: what a run has reported, one event a line.
#[derive(Debug, Default)]
pub struct EventLog {
    bytes: Vec<u8>,
}

/// One line of the log.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Counted from 1.
    pub number: usize,
    /// With the line end. The last line of a process that was killed may have none.
    bytes: &'a [u8],
}

/// What every event has, of this version of the program or another.
#[derive(Debug, Deserialize)]
pub struct Header {
    /// Such as "step" or "validation".
    pub event: String,
    pub step: u64,
    /// Seconds since 1970-01-01 00:00 UTC.
    pub time: Option<f64>,
}

impl EventLog {
    /// `None` if there is no such file.
    pub(super) fn read(path: &Path) -> Result<Option<Self>> {
        match read_regular(path) {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::Read {
                path: path.to_path_buf(),
                source,
            }),
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        let lines = self.bytes.split_inclusive(|&byte| byte == b'\n');
        let numbered = lines.enumerate();
        numbered.map(|(index, bytes)| Line {
            number: index + 1,
            bytes,
        })
    }

    /// The events, without lines that cannot be read.
    pub fn events(&self) -> impl Iterator<Item = Event> {
        self.lines().filter_map(|line| line.event().ok())
    }

    /// The lines that belong to the first `step` updates. Without the test, which comes after the
    /// last update, and without lines that are damaged or cut off.
    pub fn up_to(&self, step: u64) -> Vec<u8> {
        let keep = |line: &Line| {
            let header = line.header().ok().filter(|_| line.is_complete());
            header.is_some_and(|header| header.step <= step && header.event != "test")
        };
        let lines = self.lines().filter(keep);
        lines.flat_map(|line| line.bytes).copied().collect()
    }

    /// The last step in the log.
    pub fn last_step(&self) -> Option<u64> {
        let headers = self.lines().filter_map(|line| line.header().ok());
        headers.map(|header| header.step).max()
    }

    /// Every line as JSON, without the times and the sample translations in it.
    pub fn without_times(&self) -> Vec<Value> {
        without_times(&self.bytes)
    }
}

/// The log with these bytes.
impl From<Vec<u8>> for EventLog {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }
}

impl Line<'_> {
    fn is_complete(&self) -> bool {
        self.bytes.ends_with(b"\n")
    }

    /// The kind of event and its step, or what is wrong with the line.
    pub fn header(&self) -> std::result::Result<Header, String> {
        self.parse()
    }

    /// The event, or what is wrong with the line.
    pub fn event(&self) -> std::result::Result<Event, String> {
        self.parse()
    }

    fn parse<'a, T: Deserialize<'a>>(&'a self) -> std::result::Result<T, String> {
        let text = std::str::from_utf8(self.bytes).map_err(|error| error.to_string())?;
        serde_json::from_str(text).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(event: &str, step: u64) -> String {
        format!("{{\"event\":\"{event}\",\"step\":{step},\"new\":true}}\n")
    }

    fn log(parts: &[&[u8]]) -> EventLog {
        EventLog {
            bytes: parts.concat(),
        }
    }

    #[test]
    fn a_log_up_to_a_step_has_every_complete_line_up_to_there_and_no_other() {
        let kept = [line("step", 1), line("other", 2), line("validation", 2)].concat();
        let dropped = [line("test", 2), line("step", 3)].concat();
        let cut = line("step", 2);
        let log = log(&[
            kept.as_bytes(),
            b"{\"event\":\"step\",\"step\":2,\"\xff\":0}\n",
            dropped.as_bytes(),
            cut.trim_end().as_bytes(),
        ]);
        assert_eq!(String::from_utf8(log.up_to(2)).unwrap(), kept);
        assert_eq!(log.last_step(), Some(3));
        let broken = log.lines().find(|line| line.header().is_err()).unwrap();
        assert_eq!(broken.number, 4);
        assert!(broken.header().unwrap_err().contains("utf-8"));
    }
}
