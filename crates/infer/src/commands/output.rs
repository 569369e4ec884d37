use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use attend_infer::{Error, Result};

use super::line_file::LineFile;

/// Buffered output to stdout or a file.
pub(super) struct Output {
    writer: Box<dyn Write>,
    name: PathBuf,
}

impl Output {
    /// Opens a file; none, or `-`, is stdout.
    pub(super) fn open(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            let writer = Box::new(BufWriter::new(io::stdout().lock()));
            let name = "standard output".into();
            return Ok(Self { writer, name });
        };
        let file = File::create(path).map_err(|source| Error::Write {
            path: path.into(),
            source,
        })?;
        Ok(Self {
            writer: Box::new(BufWriter::new(file)),
            name: path.into(),
        })
    }

    pub(super) fn line(&mut self, line: impl std::fmt::Display) -> Result<()> {
        let written = writeln!(self.writer, "{line}");
        written.map_err(|source| self.broken(source))
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        let flushed = self.writer.flush();
        flushed.map_err(|source| self.broken(source))
    }

    fn broken(&self, source: io::Error) -> Error {
        let path = self.name.clone();
        Error::Write { path, source }
    }
}

/// An error if a file cannot be written, before the work that it is for. What it has stays in it.
pub(super) fn check_writable(path: &Path) -> Result<()> {
    if path == Path::new("-") {
        return Ok(());
    }
    let opened = File::options().append(true).create(true).open(path);
    opened.map(drop).map_err(|source| Error::Write {
        path: path.into(),
        source,
    })
}

/// An error if the output is one of the inputs, which opening it for writing would truncate.
pub(super) fn check_apart<'a>(
    output: Option<&Path>,
    inputs: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<()> {
    // By device and number rather than by name: a file can have several names, and stdin has none.
    let identity = |path: &Path| {
        let path = LineFile::new(path).path; // without a column
        let data = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some((data.dev(), data.ino()))
    };
    let Some((output, Some(written))) = output.map(|path| (path, identity(path))) else {
        return Ok(());
    };
    let stdin = Path::new("/dev/stdin");
    for input in inputs.into_iter().map(PathBuf::as_path).chain([stdin]) {
        if identity(input) == Some(written) {
            return Err(Error::Usage {
                message: format!("{}: is both input and output", output.display()),
                hint: "give -o another file".into(),
            });
        }
    }
    Ok(())
}
