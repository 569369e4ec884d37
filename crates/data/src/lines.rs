//! Reading text as lines. UTF-8 and line endings are handled here and nowhere else.

use crate::compression::Content;
use crate::{Error, Result};
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

/// Maximum length of a line. A longer line is an error, so that a file without line endings does not
/// fill the memory.
pub const MAX_LINE_BYTES: usize = 1 << 20;

const BOM: [u8; 3] = [0xef, 0xbb, 0xbf];

/// An iterator over the lines of a text.
///
/// Gzip, zstd and xz are detected by their first bytes, and can have several members. A line ends with
/// LF; one CR before it is removed, and so is a byte order mark at the start. The other line endings of
/// Unicode (U+2028, U+0085, VT, FF) are text, so that the number of lines is that of `wc -l`.
pub struct Lines {
    content: Content,
    read: usize,      // number of lines read
    unfinished: bool, // whether the rest of a line that is too long comes next
    failed: bool,
}

impl Lines {
    /// The lines of a file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Content::open(path.as_ref()).map(Self::of)
    }

    /// The lines of a reader, such as stdin. `name` is used in errors.
    pub fn new(reader: impl Read + Send + 'static, name: impl Into<PathBuf>) -> Result<Self> {
        Content::new(reader, name).map(Self::of)
    }

    pub(crate) fn of(content: Content) -> Self {
        Self {
            content,
            read: 0,
            unfinished: false,
            failed: false,
        }
    }

    /// The number of lines that were read, bad lines included.
    pub(crate) fn count_read(&self) -> usize {
        self.read
    }

    pub(crate) fn path(&self) -> &Path {
        &self.content.path
    }

    fn next_line(&mut self) -> Result<Option<String>> {
        if self.unfinished {
            let skipped = self.content.reader.skip_until(b'\n');
            skipped.map_err(|source| self.content.error(source, self.read as u64))?;
            self.unfinished = false;
        }
        let mut line = Vec::new();
        let most = MAX_LINE_BYTES as u64 + 2 + if self.read == 0 { 3 } else { 0 }; // CR LF, BOM
        (&mut self.content.reader)
            .take(most)
            .read_until(b'\n', &mut line)
            .map_err(|source| self.content.error(source, self.read as u64))?;
        let full = line.len() as u64 == most;
        let ended = line.pop_if(|byte| *byte == b'\n').is_some();
        if self.read == 0 && line.starts_with(&BOM) {
            line.drain(..BOM.len());
        }
        if !ended && line.is_empty() {
            return Ok(None);
        }
        self.read += 1;
        self.unfinished = full && !ended;
        line.pop_if(|byte| *byte == b'\r');
        let (path, number) = (|| self.path().to_path_buf(), self.read);
        if line.len() > MAX_LINE_BYTES || self.unfinished {
            return Err(Error::LongLine {
                path: path(),
                line: number,
            });
        }
        let text = String::from_utf8(line).map_err(|_| Error::InvalidUtf8 {
            path: path(),
            line: number,
        })?;
        Ok(Some(text))
    }
}

impl Iterator for Lines {
    type Item = Result<String>;

    /// The next line. After a bad line (see [`Error::is_bad_line`]), the lines go on; any other error is
    /// the last item.
    fn next(&mut self) -> Option<Result<String>> {
        if self.failed {
            return None;
        }
        let line = self.next_line();
        self.failed = line.as_ref().is_err_and(|error| !error.is_bad_line());
        line.transpose()
    }
}
