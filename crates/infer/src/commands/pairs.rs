//! Reads two inputs line by line, in chunks: large enough to fill batches, small enough that files of any size fit
//! in memory.

use std::path::PathBuf;

use attend_infer::{Error, Result};

use super::line_file::{LineFile, LineIter};

const PAIRS: usize = 4096;
const BYTES: usize = 4 << 20;

/// A source and its translation, on the same lines of two files.
#[derive(Debug, clap::Args)]
pub(super) struct PairArgs {
    /// Source sentences, UTF-8 text, one per line, plain or compressed with gzip, zstd or xz; or the paths of
    /// pictures, relative to the file's folder. FILE.tsv:COLUMN is a column of a table; `-` reads standard input
    #[arg(long = "src", value_name = "FILE")]
    source: PathBuf,

    /// Translations, on the same lines as the source; `-` reads standard input
    #[arg(long = "ref", value_name = "FILE")]
    target: PathBuf,
}

/// The pairs of two inputs, of which one may be stdin.
pub(super) struct Pairs {
    sides: [LineIter; 2],
    files: [LineFile; 2],
    read: usize,
    /// Found after the lines of the last chunk.
    error: Option<Error>,
}

/// The lines of both sides, as many of the one as of the other.
#[derive(Default)]
pub(super) struct PairChunk {
    pub(super) source: Vec<String>,
    pub(super) target: Vec<String>,
    /// How many pairs came before.
    pub(super) before: usize,
}

impl PairArgs {
    /// Opens both files, so that a missing one is reported before the model is loaded.
    pub(super) fn open(&self) -> Result<Pairs> {
        let files = [&self.source, &self.target].map(|path| LineFile::new(path));
        if files.iter().all(LineFile::is_stdin) {
            return Err(Error::Usage {
                message: "--src and --ref are both standard input".into(),
                hint: "give a file for one of them".into(),
            });
        }
        Ok(Pairs {
            sides: [files[0].open()?, files[1].open()?],
            files,
            read: 0,
            error: None,
        })
    }

    pub(super) fn files(&self) -> [&PathBuf; 2] {
        [&self.source, &self.target]
    }
}

impl Pairs {
    /// The input of source lines.
    pub(super) fn source_file(&self) -> &LineFile {
        &self.files[0]
    }

    /// The next pair; an error where one input ends before the other.
    fn pair(&mut self) -> Result<Option<[String; 2]>> {
        let [source, target] = &mut self.sides;
        let ended = match (source.next().transpose()?, target.next().transpose()?) {
            (Some(source), Some(target)) => {
                self.read += 1;
                return Ok(Some([source, target]));
            }
            (None, None) => return Ok(None),
            (None, Some(_)) => 0,
            (Some(_), None) => 1,
        };
        let (ended, other) = (self.files[ended].name(), self.files[1 - ended].name());
        let (lines, next) = (self.read, self.read + 1);
        Err(Error::Usage {
            message: format!("{ended} ends after {lines} lines, but {other} has a line {next}"),
            hint: "line n of one file must be the translation of line n of the other".into(),
        })
    }
}

/// Lines before an error come before the error.
impl Iterator for Pairs {
    type Item = Result<PairChunk>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.error.take() {
            return Some(Err(error));
        }
        let mut chunk = PairChunk {
            before: self.read,
            ..PairChunk::default()
        };
        let mut bytes = 0;
        while chunk.source.len() < PAIRS && bytes < BYTES {
            match self.pair() {
                Ok(Some([source, target])) => {
                    bytes += source.len() + target.len();
                    chunk.source.push(source);
                    chunk.target.push(target);
                }
                Ok(None) => break,
                Err(error) if chunk.source.is_empty() => return Some(Err(error)),
                Err(error) => {
                    self.error = Some(error);
                    break;
                }
            }
        }
        (!chunk.source.is_empty()).then_some(Ok(chunk))
    }
}
