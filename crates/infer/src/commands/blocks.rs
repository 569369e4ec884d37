//! Input, a block of lines at a time: so much that batches are full, so little that a file of any
//! size fits into memory.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;
use std::{io, iter};

use attend_data::Lines;
use attend_infer::Result;

const LINES: usize = 4096;
const BYTES: usize = 4 << 20;
/// How long stdin may pause before the lines that have come are translated: someone who waits for
/// an answer before sending more, at a terminal or through a pipe, gets it.
const PAUSE: Duration = Duration::from_millis(50);

/// What comes next from a reader that may be waiting for more input.
enum Next {
    Line(attend_data::Result<String>),
    Pause,
    End,
}

/// Files one after the other, or stdin if there are none; `-` is stdin too.
pub(super) struct Blocks {
    sources: std::vec::IntoIter<Source>,
    current: Option<Source>,
}

enum Source {
    File(Box<Lines>),
    Stdin,
    /// Stdin once something was asked of it: a thread reads, so that a pause can be noticed.
    Reading(Receiver<attend_data::Result<String>>),
}

impl Blocks {
    /// Opens every file, so that one that is missing is known before the model is read.
    pub(super) fn open(files: &[PathBuf]) -> Result<Self> {
        let stdin = PathBuf::from("-");
        let files = match files {
            [] => std::slice::from_ref(&stdin),
            files => files,
        };
        let sources = files.iter().map(|path| match *path == stdin {
            true => Ok(Source::Stdin),
            false => Ok(Source::File(Box::new(Lines::open(path)?))),
        });
        let sources = sources.collect::<Result<Vec<_>>>()?;
        Ok(Self {
            sources: sources.into_iter(),
            current: None,
        })
    }

    /// The next lines, none at the end. What was read before an error comes before the error.
    fn block(&mut self) -> Block {
        let mut block = Block::default();
        let mut bytes = 0;
        while block.lines.len() < LINES && bytes < BYTES {
            let Some(source) = &mut self.current else {
                match self.sources.next() {
                    Some(source) => self.current = Some(source),
                    None => break,
                }
                continue;
            };
            match source.next(!block.lines.is_empty()) {
                Next::Line(Ok(line)) => {
                    bytes += line.len();
                    block.lines.push(line);
                }
                Next::Line(Err(error)) => {
                    block.error = Some(error.into());
                    break;
                }
                Next::Pause => break,
                Next::End => self.current = None,
            }
        }
        block
    }
}

/// Lines, and the error that ended them if one did.
#[derive(Default)]
pub(super) struct Block {
    pub(super) lines: Vec<String>,
    pub(super) error: Option<attend_infer::Error>,
}

impl Iterator for Blocks {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        let block = self.block();
        (!block.lines.is_empty() || block.error.is_some()).then_some(block)
    }
}

impl Source {
    /// The next line, waited for no longer than a pause if `impatient`.
    fn next(&mut self, impatient: bool) -> Next {
        if let Self::Stdin = self {
            *self = Self::Reading(read_stdin());
        }
        match self {
            Self::File(lines) => lines.next().map_or(Next::End, Next::Line),
            Self::Reading(lines) if impatient => match lines.recv_timeout(PAUSE) {
                Ok(line) => Next::Line(line),
                Err(RecvTimeoutError::Timeout) => Next::Pause,
                Err(RecvTimeoutError::Disconnected) => Next::End,
            },
            Self::Reading(lines) => lines.recv().map_or(Next::End, Next::Line),
            Self::Stdin => Next::End,
        }
    }
}

fn read_stdin() -> Receiver<attend_data::Result<String>> {
    let (sender, receiver) = sync_channel(LINES);
    thread::spawn(move || {
        let lines: Box<dyn Iterator<Item = _>> = match Lines::new(io::stdin(), "standard input") {
            Ok(lines) => Box::new(lines),
            Err(error) => Box::new(iter::once(Err(error))),
        };
        for line in lines {
            if sender.send(line).is_err() {
                break; // nobody wants more
            }
        }
    });
    receiver
}
