//! A corpus as a stream of checked pairs, in bounded memory.

use crate::cache::Cache;
use crate::clean::{Cleaner, Reason};
use crate::duplicates::Duplicates;
use crate::hash::Hasher;
use crate::{BadLines, Error, Input, Pair, Progress, Result, SourceKind};
use attend_batch::SourceShape;
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

/// Pairs and bytes of text that are read at a time.
const CHUNK_PAIRS: usize = 1 << 14;
const CHUNK_BYTES: usize = 1 << 22;
/// Chunks that are read ahead.
const AHEAD: usize = 2;

/// Where the pairs of a corpus come from, and what is done with them before they are encoded.
pub struct TextSource<'a> {
    /// The files, in order.
    pub inputs: Vec<Input>,
    /// What the sources are. Those that are not text are paths.
    pub source: SourceShape,
    /// What is put before every source sentence.
    pub tag: Option<String>,
    /// What is done about lines that cannot be read.
    pub bad_lines: BadLines,
    /// Which pairs are dropped.
    pub cleaner: &'a Cleaner,
}

/// A pair that was read, and why it is dropped, if that is known before it is encoded.
#[derive(Debug)]
pub struct Checked {
    /// Normalised, with the tag in front. Without text if the line could not be read.
    pub pair: Pair,
    /// The number of its input.
    pub input: usize,
    /// None if it is kept so far.
    pub dropped: Option<Reason>,
}

impl TextSource<'_> {
    /// Reads all pairs, in order, and gives them to `take` in chunks. Reading goes on in another thread meanwhile.
    pub fn for_each_chunk(
        &self,
        duplicates: Option<&Duplicates>,
        mut take: impl FnMut(Vec<Checked>) -> Result<()>,
    ) -> Result<()> {
        thread::scope(|scope| {
            let (sender, receiver) = sync_channel(AHEAD);
            let reader = scope.spawn(move || self.read(duplicates, &sender));
            for chunk in &receiver {
                take(chunk)?; // on an error, the receiver is dropped, and reading ends
            }
            match reader.join() {
                Ok(read) => read,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Reads all pairs, in order, and sends them in chunks, until nobody receives them.
    pub fn send(&self, sender: &SyncSender<Vec<Checked>>) -> Result<()> {
        self.read(None, sender)
    }

    fn read(
        &self,
        duplicates: Option<&Duplicates>,
        sender: &SyncSender<Vec<Checked>>,
    ) -> Result<()> {
        let (mut chunk, mut bytes) = (Vec::new(), 0);
        let mut ordinal = 0;
        for (number, input) in self.inputs.iter().enumerate() {
            for pair in input.open_as(self.kind())? {
                let mut checked = self.check(pair, number)?;
                let repeated = duplicates.is_some_and(|duplicates| duplicates.contains(ordinal));
                if repeated && checked.dropped.is_none() {
                    checked.dropped = Some(Reason::Duplicate);
                }
                ordinal += 1;
                bytes += checked.pair.source.len() + checked.pair.target.len();
                chunk.push(checked);
                if chunk.len() == CHUNK_PAIRS || bytes >= CHUNK_BYTES {
                    bytes = 0;
                    if sender.send(std::mem::take(&mut chunk)).is_err() {
                        return Ok(()); // nobody wants more
                    }
                }
            }
        }
        let _ = sender.send(chunk);
        Ok(())
    }

    fn check(&self, pair: Result<Pair>, input: usize) -> Result<Checked> {
        let mut pair = match pair {
            Ok(pair) => pair,
            Err(error) if error.is_bad_line() && self.bad_lines == BadLines::Skip => {
                return Ok(Checked {
                    pair: Pair {
                        source: String::new(),
                        target: String::new(),
                        line: error.line().unwrap_or(0),
                    },
                    input,
                    dropped: Some(Reason::BadLine),
                });
            }
            Err(error) => return Err(error),
        };
        let kind = self.kind();
        let source = kind.is_text().then_some(&mut pair.source);
        for side in source.into_iter().chain([&mut pair.target]) {
            let normalized = self.cleaner.normalize(side);
            if normalized != *side {
                *side = normalized.into_owned();
            }
        }
        let dropped = self.cleaner.check(kind, &pair.source, &pair.target);
        if let Some(tag) = &self.tag {
            pair.source = format!("{tag} {}", pair.source);
        }
        Ok(Checked {
            pair,
            input,
            dropped,
        })
    }

    fn kind(&self) -> SourceKind {
        SourceKind::of(self.source)
    }

    /// A hash of everything that decides which pairs there are: the content of the files, how they are read, and
    /// the filters. What the files hold that sources name is not in it.
    pub(crate) fn identity(&self, cache: &Cache, progress: &dyn Progress) -> Result<String> {
        let mut hash = Hasher::new("pairs");
        for input in &self.inputs {
            hash.add(input.layout().as_bytes());
            for file in input.files() {
                hash.add(cache.hash_of(file, progress)?.as_bytes());
            }
        }
        hash.add(format!("{:?} {:?}", self.tag, self.bad_lines).as_bytes());
        hash.add(&self.cleaner.identity());
        if !self.kind().is_text() {
            hash.add(b"paths");
        }
        Ok(hash.finish())
    }

    /// The files that are read.
    pub fn files(&self) -> Vec<PathBuf> {
        let files = self.inputs.iter().flat_map(Input::files);
        files.map(Into::into).collect()
    }

    /// The corpus in a message.
    pub fn name(&self) -> String {
        name_of(&self.files())
    }

    pub(crate) fn empty(&self) -> Error {
        let paths = self.files();
        Error::EmptyCorpus { paths }
    }
}

/// The corpus of these files in a message: one or two of them, or the first and how many more there are.
pub fn name_of(files: &[PathBuf]) -> String {
    match files {
        [] => "no files".into(),
        [one] => one.display().to_string(),
        [a, b] => format!("{} and {}", a.display(), b.display()),
        [first, rest @ ..] => format!("{} and {} more", first.display(), rest.len()),
    }
}
