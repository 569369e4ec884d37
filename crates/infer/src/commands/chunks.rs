//! Reads input in chunks of lines: large enough to fill batches, small enough that a file of any size
//! fits in memory.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};
use std::{io, iter};

use attend_data::Lines;
use attend_infer::{Error, Result};

use super::line_file::{LineFile, LineIter};

/// The first chunk is small, so that the first translations come out early. Each is twice the one before.
const FIRST_LINES: usize = 64;
const LINES: usize = 4096;
const BYTES: usize = 4 << 20;
/// How many lines of stdin are read ahead. A line can have a megabyte, so these are few.
const AHEAD: usize = 64;
/// How long a line from stdin waits for more lines before it is translated. A client that waits for a
/// translation before it sends the next line is not blocked.
const PAUSE: Duration = Duration::from_millis(50);

/// The result of reading a line with a timeout.
enum Next {
    Line(attend_data::Result<String>),
    /// No line arrived in time.
    Pause,
    End,
}

/// Reads files one after the other, or stdin if there are none. `-` is stdin.
pub(super) struct Chunks {
    inputs: std::vec::IntoIter<(LineFile, Input)>,
    current: Option<(LineFile, Input)>,
    /// Lines of the current input so far.
    read: usize,
    /// Lines of the next chunk, at most.
    most: usize,
    /// How many ranks share a chunk.
    ranks: usize,
}

enum Input {
    File(LineIter),
    Stdin,
    /// Stdin, read by a thread so that a read can time out.
    Reading(Receiver<attend_data::Result<String>>),
}

impl Chunks {
    /// Opens every file, so that a missing one is reported before the model is loaded.
    pub(super) fn open(files: &[PathBuf]) -> Result<Self> {
        let stdin = PathBuf::from("-");
        let files = match files {
            [] => std::slice::from_ref(&stdin),
            files => files,
        };
        let inputs = files.iter().map(|path| {
            let file = LineFile::new(path);
            let input = match file.is_stdin() {
                true => Input::Stdin,
                false => Input::File(file.open()?),
            };
            Ok((file, input))
        });
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        Ok(Self {
            inputs: inputs.into_iter(),
            current: None,
            read: 0,
            most: FIRST_LINES,
            ranks: 1,
        })
    }

    /// Larger chunks, for so many ranks.
    pub(super) fn shared_by(self, ranks: usize) -> Self {
        let most = FIRST_LINES * ranks;
        Self {
            most,
            ranks,
            ..self
        }
    }

    /// The next lines; empty at the end. Lines read before an error are returned with the error.
    fn chunk(&mut self) -> Chunk {
        let mut chunk = Chunk::default();
        let mut bytes = 0;
        let mut until = None; // no line, no hurry
        while chunk.lines.len() < self.most && bytes < BYTES * self.ranks {
            let Some((file, input)) = &mut self.current else {
                match self.inputs.next() {
                    Some(input) => (self.current, self.read) = (Some(input), 0),
                    None => break,
                }
                continue;
            };
            match input.next(until) {
                Next::Line(Ok(line)) => {
                    until = until.or_else(|| Some(Instant::now() + PAUSE));
                    bytes += line.len();
                    chunk.origin.add(chunk.lines.len(), file, self.read);
                    chunk.lines.push(line);
                    self.read += 1;
                }
                Next::Line(Err(error)) => {
                    chunk.error = Some(error.into());
                    break;
                }
                Next::Pause => break,
                Next::End => self.current = None,
            }
        }
        self.most = (2 * self.most).min(LINES * self.ranks);
        chunk
    }
}

/// Lines, and the error that stopped reading, if any.
#[derive(Default)]
pub(super) struct Chunk {
    pub(super) lines: Vec<String>,
    pub(super) error: Option<Error>,
    pub(super) origin: Origin,
}

/// Which input each line of a chunk is from.
#[derive(Default)]
pub(super) struct Origin {
    /// From the line of the chunk with this index on, the input, and how many lines of it came before.
    parts: Vec<(usize, LineFile, usize)>,
}

impl Origin {
    fn add(&mut self, line: usize, file: &LineFile, before: usize) {
        if before == 0 || self.parts.is_empty() {
            self.parts.push((line, file.clone(), before));
        }
    }

    fn of(&self, line: usize) -> Option<&(usize, LineFile, usize)> {
        self.parts.iter().rev().find(|(first, ..)| *first <= line)
    }

    /// The path that a line of the chunk names, if it is `text`.
    pub(super) fn resolve(&self, line: usize, text: &str) -> String {
        self.of(line)
            .map_or_else(|| text.into(), |(_, file, _)| file.resolve(text))
    }

    /// The error with the place of the line that it is about.
    pub(super) fn locate(&self, error: Error) -> Error {
        let Error::Line { index, source, .. } = error else {
            return error;
        };
        let place = match self.of(index) {
            Some((first, file, before)) => file.place(index - first + before),
            None => format!("line {}", index + 1),
        };
        Error::Line {
            index,
            place,
            source,
        }
    }
}

impl Iterator for Chunks {
    type Item = Chunk;

    fn next(&mut self) -> Option<Chunk> {
        let chunk = self.chunk();
        (!chunk.lines.is_empty() || chunk.error.is_some()).then_some(chunk)
    }
}

impl Input {
    /// The next line. Stdin is waited for no longer than `until`.
    fn next(&mut self, until: Option<Instant>) -> Next {
        if let Self::Stdin = self {
            *self = Self::Reading(stdin_lines());
        }
        match self {
            Self::File(lines) => lines.next().map_or(Next::End, Next::Line),
            Self::Reading(lines) => {
                let Some(until) = until else {
                    return lines.recv().map_or(Next::End, Next::Line);
                };
                match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                    Ok(line) => Next::Line(line),
                    Err(RecvTimeoutError::Timeout) => Next::Pause,
                    Err(RecvTimeoutError::Disconnected) => Next::End,
                }
            }
            Self::Stdin => Next::End,
        }
    }
}

fn stdin_lines() -> Receiver<attend_data::Result<String>> {
    let (sender, receiver) = sync_channel(AHEAD);
    thread::spawn(move || {
        let lines: Box<dyn Iterator<Item = _>> = match Lines::new(io::stdin(), "standard input") {
            Ok(lines) => Box::new(lines),
            Err(error) => Box::new(iter::once(Err(error))),
        };
        for line in lines {
            if sender.send(line).is_err() {
                break; // the receiver was dropped
            }
        }
    });
    receiver
}
