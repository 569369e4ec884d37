//! The files of a corpus, once they are found.

use crate::compression::Content;
use crate::{Column, Error, FilePair, Format, Pairs, Result, SourceKind, read};
use std::io::Read;
use std::path::{Path, PathBuf};

/// One file, or two files of parallel text, and how pairs are read from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Two files, line by line.
    Text(FilePair),
    /// One file that holds both sides.
    Table {
        /// The file.
        path: PathBuf,
        /// Its format, which is not text.
        format: Format,
        /// Which part of a record is which side.
        columns: Columns,
    },
}

/// Which part of a record is which side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// The source, if the config names it.
    pub source: Option<Column>,
    /// The target, if the config names it.
    pub target: Option<Column>,
    /// Whether a TSV file begins with the names of the columns.
    pub header: bool,
    /// The languages of source and target, which name the sides if nothing else does.
    pub languages: (String, String),
}

impl Columns {
    /// The pairs of a reader, such as a file in memory. `name` is used in errors. Parallel text and Parquet cannot be
    /// read in this way.
    pub fn read(
        &self,
        format: Format,
        reader: impl Read + Send + 'static,
        name: impl Into<PathBuf>,
    ) -> Result<Pairs> {
        self.of_content(format, Content::new(reader, name)?)
    }

    fn of_content(&self, format: Format, content: Content) -> Result<Pairs> {
        let path = content.path.display();
        match format {
            Format::Tsv => read::tsv::read(content, self),
            Format::Jsonl => Ok(read::jsonl::read(content, self)),
            Format::Tmx => read::tmx::read(content, self),
            Format::Parquet => Err(Error::Unreadable {
                problem: format!("{path}: this build does not read Parquet"),
                hint: "build with `--features parquet`".into(),
            }),
            Format::Text => Err(Error::Unreadable {
                problem: format!("{path}: parallel text has two files"),
                hint: "give both files as `source` and `target`".into(),
            }),
        }
    }
}

impl Input {
    /// The pairs, in the order of the file.
    ///
    /// A line that cannot be read is an error for which [`crate::Error::is_bad_line`] is true; the next pair can be
    /// read after it. Any other error is the last item.
    pub fn open(&self) -> Result<Pairs> {
        match self {
            Self::Text(files) => read::text::open(files),
            #[cfg(feature = "parquet")]
            Self::Table {
                path,
                format: Format::Parquet,
                columns,
            } => read::parquet::open(path, columns),
            Self::Table {
                path,
                format,
                columns,
            } => columns.of_content(*format, Content::open(path)?),
        }
    }

    /// The same. Sources that are not text are paths, which are relative to the folder of the file that names them.
    pub fn open_as(&self, kind: SourceKind) -> Result<Pairs> {
        let pairs = self.open()?;
        if kind.is_text() {
            return Ok(pairs);
        }
        let folder = self.files().first().and_then(|file| file.parent());
        let folder = folder.map(Path::to_path_buf).unwrap_or_default();
        Ok(Box::new(pairs.map(move |pair| {
            let mut pair = pair?;
            let path = pair.source.trim();
            if !path.is_empty() {
                // What a corpus says is UTF-8, and so is the folder, unless its name cannot be read as text.
                pair.source = folder.join(path).to_string_lossy().into_owned();
            }
            Ok(pair)
        })))
    }

    /// How the pairs are read: the same for files that are read in the same way.
    pub(crate) fn layout(&self) -> String {
        match self {
            Self::Text(_) => format!("{:?}", Format::Text),
            Self::Table {
                format, columns, ..
            } => format!("{format:?} {columns:?}"),
        }
    }

    /// The files that are read.
    pub fn files(&self) -> Vec<&Path> {
        match self {
            Self::Text(FilePair { source, target }) => vec![source, target],
            Self::Table { path, .. } => vec![path],
        }
    }
}
