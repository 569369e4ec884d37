//! What turns lines into what a model reads: sentences by a tokenizer, pictures and features by the files that the
//! lines name.

use attend_batch::{Packed, Source, SourceShape};
use attend_data::{SourceReader, Tokenizers};
use attend_model::Encode;

use crate::{Error, Result};

/// Reads the lines of a model's input.
#[derive(Clone, Copy)]
pub(crate) struct LineReader<'a> {
    tokenizers: &'a Tokenizers,
    shape: SourceShape,
    /// Regions of a picture.
    regions: usize,
}

/// Lines for a model. Sentences have been encoded; files are read when their batch is.
pub(crate) enum ReadLines<'a> {
    Sentences {
        tokens: Vec<Vec<u32>>,
        /// Tokens before they were cut.
        whole: Vec<usize>,
    },
    Files {
        /// Blank where a line is.
        paths: Vec<&'a str>,
        lengths: Vec<usize>,
        reader: SourceReader,
    },
}

/// Files of features that are in memory at once while their lengths are read.
const FILES: usize = 16;

impl<'a> LineReader<'a> {
    /// Of lines for this model.
    pub(crate) fn new(model: &(impl Encode + ?Sized), tokenizers: &'a Tokenizers) -> Self {
        let regions = model.regions().map_or(1, |(rows, columns)| rows * columns);
        Self {
            tokenizers,
            shape: model.source(),
            regions: regions.max(1),
        }
    }

    /// Of sentences.
    pub(crate) fn of_text(tokenizers: &'a Tokenizers) -> Self {
        Self {
            tokenizers,
            shape: SourceShape::Text,
            regions: 1,
        }
    }

    /// Sentences are encoded in parallel. Of features, so many rows are read at most.
    pub(crate) fn read<'l, S: AsRef<str> + Sync>(
        &self,
        lines: &'l [S],
        max_length: usize,
    ) -> Result<ReadLines<'l>> {
        if self.shape == SourceShape::Text {
            let tokens = self.tokenizers.require_source()?.encode_batch(lines)?;
            return Ok(ReadLines::sentences(tokens));
        }
        let paths: Vec<&str> = lines.iter().map(AsRef::as_ref).collect();
        let reader = SourceReader::new(self.shape, max_length);
        let lengths = match self.shape {
            SourceShape::Features { .. } => lengths(&reader, &paths)?,
            _ => vec![self.regions; paths.len()],
        };
        Ok(ReadLines::Files {
            paths,
            lengths,
            reader,
        })
    }

    /// The same for sentences, one after the other: without the thread pool, which may be another's.
    pub(crate) fn read_in_order<S: AsRef<str>>(&self, lines: &[S]) -> Result<ReadLines<'static>> {
        let tokenizer = self.tokenizers.require_source()?;
        let tokens = lines
            .iter()
            .map(|line| Ok(tokenizer.encode(line.as_ref())?));
        Ok(ReadLines::sentences(tokens.collect::<Result<_>>()?))
    }
}

impl ReadLines<'_> {
    pub(crate) fn sentences(tokens: Vec<Vec<u32>>) -> Self {
        let whole = tokens.iter().map(Vec::len).collect();
        Self::Sentences { tokens, whole }
    }

    /// Cuts sentences to this many tokens, of which `eos` is the last.
    pub(crate) fn cut(&mut self, max_length: usize, eos: u32) {
        let Self::Sentences { tokens, .. } = self else {
            return;
        };
        for tokens in tokens.iter_mut().filter(|it| it.len() > max_length) {
            tokens.truncate(max_length - 1);
            tokens.push(eos);
        }
    }

    /// How much of a batch a line takes: its tokens, the regions of its picture, or its rows of features.
    pub(crate) fn length(&self, line: usize) -> usize {
        match self {
            Self::Sentences { tokens, .. } => tokens[line].len(),
            Self::Files { lengths, .. } => lengths[line],
        }
    }

    /// The tokens of a sentence. Files have none.
    pub(crate) fn tokens(&self, line: usize) -> Option<&[u32]> {
        match self {
            Self::Sentences { tokens, .. } => Some(&tokens[line]),
            Self::Files { .. } => None,
        }
    }

    /// The tokens of a sentence before it was cut, `</s>` included; 1 for a file.
    pub(crate) fn whole_length(&self, line: usize) -> usize {
        match self {
            Self::Sentences { whole, .. } => whole[line],
            Self::Files { .. } => 1,
        }
    }

    /// Whether a line has neither a token nor a file.
    pub(crate) fn is_missing(&self, line: usize) -> bool {
        match self {
            Self::Sentences { tokens, .. } => tokens[line].is_empty(),
            Self::Files { paths, .. } => paths[line].trim().is_empty(),
        }
    }

    /// Whether a line is not blank, but says nothing: it has no token but `</s>`.
    pub(crate) fn says_nothing(&self, line: usize) -> bool {
        self.tokens(line).is_some_and(|tokens| tokens.len() < 2)
    }

    /// Some of the lines as the encoder reads them.
    pub(crate) fn batch(&self, lines: &[usize]) -> Result<Source> {
        match self {
            Self::Sentences { tokens, .. } => {
                let tokens = lines.iter().map(|&line| &tokens[line]);
                Ok(Packed::of_sentences(tokens).into())
            }
            Self::Files { paths, reader, .. } => {
                let chosen: Vec<&str> = lines.iter().map(|&line| paths[line]).collect();
                let read = reader.read(&chosen);
                read.map_err(|error| first_fault(reader, paths, lines, error))
            }
        }
    }
}

/// The rows of each file of features; 1 for a blank line.
fn lengths(reader: &SourceReader, paths: &[&str]) -> Result<Vec<usize>> {
    let mut lengths = vec![1; paths.len()];
    let full = (0..paths.len()).filter(|&line| !paths[line].trim().is_empty());
    let full: Vec<usize> = full.collect();
    for lines in full.chunks(FILES) {
        let chosen: Vec<&str> = lines.iter().map(|&line| paths[line]).collect();
        let read = reader.read(&chosen);
        let read = read.map_err(|error| first_fault(reader, paths, lines, error))?;
        for (&line, &length) in lines.iter().zip(read.segments().lengths()) {
            lengths[line] = length;
        }
    }
    Ok(lengths)
}

/// The error with the first of the lines whose file cannot be read.
fn first_fault(
    reader: &SourceReader,
    paths: &[&str],
    lines: &[usize],
    error: attend_data::Error,
) -> Error {
    let faults = lines
        .iter()
        .map(|&line| (line, reader.read(&[paths[line]]).err()));
    let fault = faults
        .filter_map(|(line, error)| Some((line, error?)))
        .next();
    match fault {
        Some((line, source)) => Error::Line {
            index: line,
            place: format!("line {}", line + 1),
            source,
        },
        None => error.into(), // it could be read the second time
    }
}
