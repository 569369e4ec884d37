//! Reading text as lines. Gzip, UTF-8 and line endings are handled here and nowhere else.

use crate::{Error, Result};
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

/// Maximum length of a line. A longer line is an error, so that a file without line endings does not
/// fill the memory.
pub const MAX_LINE_BYTES: usize = 1 << 20;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const BOM: [u8; 3] = [0xef, 0xbb, 0xbf];

/// An iterator over the lines of a text.
///
/// Gzip is detected by its first bytes, and can have several members. A line ends with LF; one CR
/// before it is removed, and so is a byte order mark at the start. The other line endings of Unicode
/// (U+2028, U+0085, VT, FF) are text, so that the number of lines is that of `wc -l`.
pub struct Lines {
    reader: Box<dyn BufRead + Send>,
    path: PathBuf,
    read: usize, // number of lines read
    gzip: bool,
    failed: bool,
}

impl Lines {
    /// The lines of a file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => Error::MissingFile {
                path: path.into(),
                tried: Vec::new(),
            },
            _ => Error::Io {
                path: path.into(),
                source,
            },
        })?;
        Self::new(file, path)
    }

    /// The lines of a reader, such as stdin. `name` is used in errors.
    pub fn new(mut reader: impl Read + Send + 'static, name: impl Into<PathBuf>) -> Result<Self> {
        let path = name.into();
        let mut head = Vec::new();
        reader
            .by_ref()
            .take(GZIP.len() as u64)
            .read_to_end(&mut head)
            .map_err(|source| Error::Io {
                path: path.clone(),
                source,
            })?;
        let gzip = head == GZIP;
        let whole = BufReader::with_capacity(1 << 16, Cursor::new(head).chain(reader));
        let reader: Box<dyn BufRead + Send> = if gzip {
            let decoder = MultiGzDecoder::new(whole);
            Box::new(BufReader::with_capacity(1 << 16, decoder))
        } else {
            Box::new(whole)
        };
        Ok(Self {
            reader,
            path,
            read: 0,
            gzip,
            failed: false,
        })
    }

    fn next_line(&mut self) -> Result<Option<String>> {
        let mut line = Vec::new();
        let most = MAX_LINE_BYTES as u64 + 2; // CR LF
        (&mut self.reader)
            .take(most)
            .read_until(b'\n', &mut line)
            .map_err(|source| self.broken(source))?;
        let ended = line.pop_if(|byte| *byte == b'\n').is_some();
        if self.read == 0 && line.starts_with(&BOM) {
            line.drain(..BOM.len());
        }
        if !ended && line.is_empty() {
            return Ok(None);
        }
        self.read += 1;
        line.pop_if(|byte| *byte == b'\r');
        let path = || self.path.clone();
        if line.len() > MAX_LINE_BYTES {
            return Err(Error::LongLine {
                path: path(),
                line: self.read,
            });
        }
        let text = String::from_utf8(line).map_err(|_| Error::InvalidUtf8 {
            path: path(),
            line: self.read,
        })?;
        Ok(Some(text))
    }

    fn broken(&self, source: io::Error) -> Error {
        let path = self.path.clone();
        if self.gzip {
            let line = self.read;
            Error::DamagedGzip { path, line, source }
        } else {
            Error::Io { path, source }
        }
    }
}

impl Iterator for Lines {
    type Item = Result<String>;

    /// The next line. After an error, there are no more lines.
    fn next(&mut self) -> Option<Result<String>> {
        if self.failed {
            return None;
        }
        let line = self.next_line();
        self.failed = line.is_err();
        line.transpose()
    }
}
