use std::io::stdin;
use std::path::{Path, PathBuf};

use attend_data::{Column, Columns, Format, Input, Lines};
use attend_infer::{Error, Result};

const STDIN: &str = "standard input";

/// An input of lines: a file, standard input, or one column of a table, which is written `FILE.tsv:COLUMN`.
#[derive(Clone, Debug)]
pub(super) struct LineFile {
    /// Without the column; `-` is standard input.
    pub(super) path: PathBuf,
    table: Option<(Format, Column)>,
}

/// The lines of an input.
pub(super) type LineIter = Box<dyn Iterator<Item = attend_data::Result<String>> + Send>;

impl LineFile {
    /// A file that exists is that file, whatever its name.
    pub(super) fn new(argument: &Path) -> Self {
        let whole = Self {
            path: argument.into(),
            table: None,
        };
        let split = argument.to_str().and_then(|name| name.rsplit_once(':'));
        let Some((path, column)) = split.filter(|_| !argument.exists()) else {
            return whole;
        };
        let format = Format::of(Path::new(path));
        let Some(format) = format.filter(|_| !column.is_empty()) else {
            return whole;
        };
        let column = match column.parse() {
            Ok(number) if format == Format::Tsv => Column::Number(number),
            _ => Column::Name(column.into()),
        };
        Self {
            path: path.into(),
            table: Some((format, column)),
        }
    }

    pub(super) fn open(&self) -> Result<LineIter> {
        let Some((format, column)) = &self.table else {
            return Ok(match self.is_stdin() {
                true => Box::new(Lines::new(stdin(), STDIN)?),
                false => Box::new(Lines::open(&self.path)?),
            });
        };
        let input = Input::Table {
            path: self.path.clone(),
            format: *format,
            columns: Columns {
                source: Some(column.clone()),
                target: Some(column.clone()),
                header: self.has_header(),
                languages: (String::new(), String::new()),
            },
        };
        let pairs = input.open()?;
        Ok(Box::new(pairs.map(|pair| Ok(pair?.source))))
    }

    pub(super) fn is_stdin(&self) -> bool {
        self.path == Path::new("-")
    }

    /// What it is called in messages.
    pub(super) fn name(&self) -> String {
        match self.is_stdin() {
            true => STDIN.into(),
            false => self.path.display().to_string(),
        }
    }

    /// The path that a line names, which is relative to the folder of the file. A blank line names none.
    pub(super) fn resolve(&self, line: &str) -> String {
        let folder = self.path.parent().filter(|_| !self.is_stdin());
        match folder {
            Some(folder) if !line.trim().is_empty() => {
                folder.join(line).to_string_lossy().into_owned()
            }
            _ => line.into(),
        }
    }

    /// Where the line with this index is.
    pub(super) fn place(&self, index: usize) -> String {
        let line = index + 1 + usize::from(self.has_header());
        format!("{}:{line}", self.name())
    }

    /// The error with the place of the line that it is about; `before` lines came before those that were given.
    pub(super) fn locate(&self, error: Error, before: usize) -> Error {
        match error {
            Error::Line { index, source, .. } => Error::Line {
                index,
                place: self.place(before + index),
                source,
            },
            error => error,
        }
    }

    /// Whether the first line of a table has the names of its columns.
    fn has_header(&self) -> bool {
        matches!(&self.table, Some((Format::Tsv, Column::Name(_))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_folder_of_the_file_that_names_them() {
        for (file, line, expected) in [
            ("data/test.txt", "a.png", "data/a.png"),
            ("data/test.tsv:picture", "a.png", "data/a.png"),
            ("test.txt", "pictures/a.png", "pictures/a.png"),
            ("data/test.txt", "/a.png", "/a.png"),
            ("-", "a.png", "a.png"),
            ("data/test.txt", "  ", "  "),
        ] {
            let file = LineFile::new(Path::new(file));
            assert_eq!(file.resolve(line), expected);
        }
    }

    #[test]
    fn a_line_of_a_table_with_names_is_counted_after_them() {
        for (file, place) in [
            ("a.txt", "a.txt:1"),
            ("a.tsv:picture", "a.tsv:2"),
            ("a.tsv:0", "a.tsv:1"),
            ("a.jsonl:image", "a.jsonl:1"),
            ("-", "standard input:1"),
            ("no:table", "no:table:1"),
        ] {
            assert_eq!(LineFile::new(Path::new(file)).place(0), place);
        }
    }
}
