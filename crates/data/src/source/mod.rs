//! Sources that are not text: pictures, and rows of features, from files.

mod features;
mod file;
mod npy;
#[cfg(feature = "pictures")]
mod picture;
mod problem;
mod safetensors;
#[cfg(feature = "pictures")]
mod svg;

pub(crate) use problem::Problem;

use crate::{Error, Input, SourceKind};
use attend_batch::{Features, Pictures, Source, SourceShape};
use file::Kind;
use rayon::prelude::*;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// A result with the errors of this crate, or with others.
type Result<T, E = Error> = std::result::Result<T, E>;

/// Changes whenever the same file gives other numbers.
pub(crate) const VERSION: u32 = 1;

/// Reads pictures or features from files.
#[derive(Clone, Copy, Debug)]
pub struct SourceReader {
    shape: SourceShape,
    max_length: usize,
}

/// What a file holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    /// `[height, width, channels]`.
    #[cfg_attr(not(feature = "pictures"), allow(dead_code))]
    Picture(Vec<u8>),
    /// Rows, end to end.
    Rows(Vec<f32>),
}

impl SourceReader {
    /// Reads what a model with such sources reads. `max_length` is the most rows of features of a file.
    pub fn new(shape: SourceShape, max_length: usize) -> Self {
        Self { shape, max_length }
    }

    /// What is read.
    pub fn shape(&self) -> SourceShape {
        self.shape
    }

    pub(crate) fn max_length(&self) -> usize {
        self.max_length
    }

    /// Reads these files, in parallel. Their order is kept. A file that cannot be used is an error that names it.
    pub fn read(&self, paths: &[impl AsRef<Path> + Sync]) -> Result<Source> {
        self.check()?;
        let read = paths.par_iter().map(|path| {
            let path = path.as_ref();
            self.decode(path).map_err(|problem| problem.of_file(path))
        });
        // All results, so that the error is that of the first file, whatever thread is the fastest.
        let all: Vec<Result<Content>> = read.collect();
        let mut sources = Sources::new(self.shape);
        for content in all {
            sources.push(&content?);
        }
        Ok(sources.finish())
    }

    /// An error if nothing can be read in this way.
    pub(crate) fn check(&self) -> Result<()> {
        match self.shape {
            SourceShape::Text => Err(Error::Unreadable {
                problem: "the source of this model is text, not a file".into(),
                hint: "give sentences".into(),
            }),
            SourceShape::Pictures(_) if cfg!(not(feature = "pictures")) => Err(Error::Unreadable {
                problem: "this build does not read pictures".into(),
                hint: "build with `--features pictures`".into(),
            }),
            _ => Ok(()),
        }
    }

    /// Reads one file.
    pub(crate) fn decode(&self, path: &Path) -> Result<Content, Problem> {
        let (bytes, kind) = file::read(path)?;
        let content = self.decode_bytes(&bytes, kind)?;
        if kind == Kind::Svg {
            warn_of_text(path, &bytes);
        }
        Ok(content)
    }

    /// An error if there is no file for the source of a pair. The files are not read.
    pub fn find_all(inputs: &[Input], kind: SourceKind) -> Result<()> {
        if kind.is_text() {
            return Ok(());
        }
        for input in inputs {
            let corpus = input.files().first().copied().unwrap_or(Path::new(""));
            for pair in input.open_as(kind)? {
                let pair = pair?;
                let path = Path::new(&pair.source);
                let found = file::find(path);
                found.map_err(|problem| problem.at_line(path, corpus, pair.line))?;
            }
        }
        Ok(())
    }

    /// Whether the bytes of a file, whose name is not known, can be used.
    #[doc(hidden)]
    pub fn decodes(&self, bytes: &[u8]) -> bool {
        Kind::of(bytes).is_some_and(|kind| self.decode_bytes(bytes, kind).is_ok())
    }

    fn decode_bytes(&self, bytes: &[u8], kind: Kind) -> Result<Content, Problem> {
        match (self.shape, kind) {
            #[cfg(feature = "pictures")]
            (SourceShape::Pictures(shape), Kind::Png | Kind::Jpeg) => {
                picture::decode(bytes, kind, shape).map(Content::Picture)
            }
            #[cfg(feature = "pictures")]
            (SourceShape::Pictures(shape), Kind::Svg) => {
                svg::decode(bytes, shape).map(Content::Picture)
            }
            (SourceShape::Features { width }, Kind::Npy | Kind::Safetensors) => {
                let matrix = match kind {
                    Kind::Npy => npy::parse(bytes)?,
                    _ => safetensors::parse(bytes)?,
                };
                matrix.rows(width, self.max_length).map(Content::Rows)
            }
            (SourceShape::Pictures(_), _) => {
                let what = format!("is {kind}, not a picture that is read");
                Err(Problem::new(what, "convert it to PNG or JPEG"))
            }
            (_, _) => {
                let what = format!("is {kind}, not a file of features");
                Err(Problem::new(what, file::READ))
            }
        }
    }
}

/// Says once that text is not drawn, because there may be thousands of such files.
fn warn_of_text(path: &Path, svg: &[u8]) {
    static SAID: AtomicBool = AtomicBool::new(false);
    let has_text = || svg.windows(5).any(|window| window == b"<text");
    if !SAID.load(Ordering::Relaxed) && has_text() && !SAID.swap(true, Ordering::Relaxed) {
        let path = path.display();
        tracing::warn!("{path}: text in SVG is not drawn; other files are not mentioned");
    }
}

/// The sources of a batch, as they come together.
pub(crate) enum Sources {
    Tokens(Vec<Vec<u32>>),
    Pictures(Vec<f32>, attend_batch::PictureShape),
    Features {
        values: Vec<f32>,
        width: usize,
        lengths: Vec<usize>,
    },
}

impl Sources {
    pub(crate) fn new(shape: SourceShape) -> Self {
        match shape {
            SourceShape::Text => Self::Tokens(Vec::new()),
            SourceShape::Pictures(shape) => Self::Pictures(Vec::new(), shape),
            SourceShape::Features { width } => Self::Features {
                values: Vec::new(),
                width,
                lengths: Vec::new(),
            },
        }
    }

    fn push(&mut self, content: &Content) {
        match content {
            Content::Picture(bytes) => self.push_picture(bytes),
            Content::Rows(rows) => self.push_rows(rows.iter().copied()),
        }
    }

    /// Bytes of a picture, which become numbers from -1 (black) to 1 (white).
    pub(crate) fn push_picture(&mut self, bytes: &[u8]) {
        if let Self::Pictures(values, _) = self {
            values.extend(bytes.iter().map(|&byte| f32::from(byte) / 127.5 - 1.0));
        }
    }

    pub(crate) fn push_rows(&mut self, rows: impl Iterator<Item = f32>) {
        if let Self::Features {
            values,
            width,
            lengths,
        } = self
        {
            let before = values.len();
            values.extend(rows);
            lengths.push((values.len() - before) / (*width).max(1));
        }
    }

    pub(crate) fn push_ids(&mut self, ids: Vec<u32>) {
        if let Self::Tokens(all) = self {
            all.push(ids);
        }
    }

    pub(crate) fn finish(self) -> Source {
        match self {
            Self::Tokens(ids) => attend_batch::Packed::of_sentences(ids).into(),
            Self::Pictures(values, shape) => Source::Pictures(Pictures::new(values, shape)),
            Self::Features {
                values,
                width,
                lengths,
            } => Source::Features(Features::new(values, width, lengths)),
        }
    }
}
