//! The pictures or features of a dataset, each of which is kept once.

use crate::cache::{Cache, Rows, RowsWriter, Shape};
use crate::clean::Reason;
use crate::hash::Hasher;
use crate::source::{Content, Problem, SourceReader, Sources, VERSION};
use crate::text_source::Checked;
use crate::{BadLines, Error, Progress, TextSource};
use attend_batch::{PictureShape, SourceShape};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A result with the errors of this crate, or with others.
type Result<T, E = Error> = std::result::Result<T, E>;

/// About how many bytes of pictures or features are held at a time.
const HELD: usize = 64 << 20;

/// What `meta.json` says of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredMeta {
    pub(crate) shape: Shape,
    /// Height, width and channels of pictures, or the width of rows of features.
    sizes: Vec<usize>,
}

/// Reads any of them.
pub(super) struct Stored {
    rows: Rows,
    source: SourceShape,
}

impl Stored {
    /// None if there are no such sources.
    pub(super) fn new(rows: Rows, meta: &StoredMeta) -> Option<Self> {
        let source = match meta.sizes[..] {
            [height, width, channels] => SourceShape::Pictures(PictureShape {
                height,
                width,
                channels,
            }),
            [width] if width > 0 => SourceShape::Features { width },
            _ => return None,
        };
        Some(Self { rows, source })
    }

    pub(super) fn source(&self) -> SourceShape {
        self.source
    }

    /// Adds the source with this row of numbers, which are equal. None if it is damaged.
    pub(super) fn read(&self, numbers: &[u32], sources: &mut Sources) -> Option<()> {
        let number = *numbers.first()? as usize;
        let length = (number < self.rows.len()).then(|| self.rows.length(number))?;
        match self.source {
            SourceShape::Pictures(shape) if length == shape.values() && numbers.len() == 1 => {
                sources.push_picture(self.rows.raw(number)?);
            }
            SourceShape::Features { width } if length == numbers.len().checked_mul(width)? => {
                sources.push_rows(self.rows.floats(number)?);
            }
            _ => return None,
        }
        Some(())
    }
}

/// Reads what the sources of a corpus name, and writes it.
pub(crate) struct StoredWriter<W> {
    reader: SourceReader,
    rows: RowsWriter<W>,
    /// The first file of each input, for errors.
    inputs: Vec<PathBuf>,
    bad_lines: BadLines,
    /// The number and the length of what each path names, or why it cannot be used.
    known: HashMap<String, Result<(u32, usize), Problem>>,
}

impl<W: Write> StoredWriter<W> {
    pub(super) fn new(files: [W; 3], text: &TextSource) -> Self {
        let (shape, max_length) = (text.source, text.cleaner.max_length());
        let first = text
            .inputs
            .iter()
            .map(|input| input.files().first().copied());
        Self {
            reader: SourceReader::new(shape, max_length),
            rows: RowsWriter::new(
                files,
                match shape {
                    SourceShape::Features { .. } => Shape::of_floats(),
                    _ => Shape::of_bytes(),
                },
            ),
            inputs: first
                .map(|file| file.map(Path::to_path_buf).unwrap_or_default())
                .collect(),
            bad_lines: text.bad_lines,
            known: HashMap::new(),
        }
    }

    /// The rows of the sources of these pairs, or why they are dropped. What is new among them is read in parallel
    /// and written in its order.
    pub(super) fn add(
        &mut self,
        pairs: &[&Checked],
        failed: &impl Fn(io::Error) -> Error,
    ) -> Result<Vec<Result<Vec<u32>, Reason>>> {
        let mut new: Vec<&Checked> = Vec::new();
        let mut seen: HashSet<&str> = HashSet::new();
        for pair in pairs {
            let path = &*pair.pair.source;
            if !self.known.contains_key(path) && seen.insert(path) {
                new.push(pair);
            }
        }
        for some in new.chunks(self.at_a_time()) {
            let read = some
                .par_iter()
                .map(|pair| self.reader.decode(Path::new(&pair.pair.source)));
            let read: Vec<Result<Content, Problem>> = read.collect();
            for (pair, content) in some.iter().zip(read) {
                let number = self.rows.len() as u32; // fewer than the bytes of a disk
                let known = match content {
                    Ok(Content::Picture(bytes)) => {
                        self.rows.push_bytes(&bytes).map_err(failed)?;
                        Ok((number, 1))
                    }
                    Ok(Content::Rows(values)) => {
                        self.rows.push_floats(&values).map_err(failed)?;
                        Ok((number, values.len() / self.width()))
                    }
                    Err(problem) => {
                        let is_skipped = self.bad_lines == BadLines::Skip;
                        if problem.reason == Reason::BadSource && !is_skipped {
                            let corpus = &self.inputs[pair.input];
                            let path = Path::new(&pair.pair.source);
                            return Err(problem.at_line(path, corpus, pair.pair.line));
                        }
                        Err(problem)
                    }
                };
                self.known.insert(pair.pair.source.clone(), known);
            }
        }
        let row = |pair: &&Checked| match &self.known[&pair.pair.source] {
            Ok((number, length)) => Ok(vec![*number; *length]),
            Err(problem) => Err(problem.reason),
        };
        Ok(pairs.iter().map(row).collect())
    }

    /// How many files are held at a time.
    fn at_a_time(&self) -> usize {
        let bytes = match self.reader.shape() {
            SourceShape::Features { width } => {
                let most = self.reader.max_length().saturating_mul(width);
                most.saturating_mul(size_of::<f32>())
            }
            SourceShape::Pictures(shape) => shape.values(),
            SourceShape::Text => 1,
        };
        (HELD / bytes.max(1)).max(1)
    }

    fn width(&self) -> usize {
        match self.reader.shape() {
            SourceShape::Features { width } => width,
            _ => 1,
        }
    }

    /// The files, which are not flushed, what they hold, and a hash of it.
    pub(super) fn finish(self) -> io::Result<([W; 3], StoredMeta, String)> {
        let sizes = match self.reader.shape() {
            SourceShape::Pictures(shape) => vec![shape.height, shape.width, shape.channels],
            SourceShape::Features { width } => vec![width],
            SourceShape::Text => Vec::new(),
        };
        let (files, shape, hash) = self.rows.finish()?;
        Ok((files, StoredMeta { shape, sizes }, hash))
    }
}

/// A hash of everything that decides what is stored: the content of the files that sources name, and how they are read.
/// None if the sources are text.
///
/// With `with_paths`, the paths are part of it, because they are kept.
pub(super) fn identity(
    text: &TextSource,
    with_paths: bool,
    cache: &Cache,
    progress: &dyn Progress,
) -> Result<Option<String>> {
    if text.source == SourceShape::Text {
        return Ok(None);
    }
    SourceReader::new(text.source, text.cleaner.max_length()).check()?;
    let mut hash = Hasher::new("sources");
    hash.add(&VERSION.to_le_bytes());
    hash.add(format!("{:?}", text.source).as_bytes());
    let task = progress.start(&format!("checking what {} names", text.name()), None);
    let mut seen: HashSet<String> = HashSet::new();
    text.for_each_chunk(None, |chunk| {
        let mut new = Vec::new();
        for checked in &chunk {
            let path = &checked.pair.source;
            if checked.dropped.is_none() && !seen.contains(path) {
                seen.insert(path.clone());
                new.push(Path::new(path));
            }
        }
        // What cannot be read is told when it is decoded, with its line. Its error is part of the hash, so that a file
        // that appears later is noticed. A pipe is not opened: it could be waited for without end.
        let content = |path: &&Path| match path.is_file() {
            true => cache
                .hash_of(path, &())
                .unwrap_or_else(|error| error.to_string()),
            false => "no file".into(),
        };
        let hashes: Vec<String> = new.par_iter().map(content).collect();
        for (path, content) in new.iter().zip(hashes) {
            hash.add(content.as_bytes());
            // The name can be at odds with the content, which is an error.
            let name = if with_paths {
                Some(path.as_os_str())
            } else {
                path.extension()
            };
            hash.add(name.unwrap_or_default().as_encoded_bytes());
        }
        task.advance(chunk.len() as u64);
        Ok(())
    })?;
    Ok(Some(hash.finish()))
}
