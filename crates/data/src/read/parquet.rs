//! Apache Parquet: two columns of text, read side by side.

use super::{Pair, Pairs, bad, on_one_line, pair, pairs_of};
use crate::compression::Content;
use crate::input::Columns;
use crate::{Column, Error, Result};
use parquet::basic::Type;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::SchemaDescriptor;
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

const BATCH: usize = 256; // records that are decoded together

pub(crate) fn open(path: &Path, columns: &Columns) -> Result<Pairs> {
    if let Some(compression) = Content::open(path)?.compression {
        let kind = compression.name();
        return Err(Error::Unreadable {
            problem: format!("{}: a Parquet file inside of {kind}", path.display()),
            hint: format!(
                "decompress it with `{kind} -d {}`: Parquet is compressed itself, and is not read from its start",
                path.display()
            ),
        });
    }
    let file = File::open(path).map_err(|source| Error::Io {
        path: path.into(),
        source,
    })?;
    let file = guarded(|| SerializedFileReader::new(file)).map_err(|e| damaged(path, 0, e))?;
    let schema = file.metadata().file_metadata().schema_descr_ptr();
    let (source, target) = (&columns.languages.0, &columns.languages.1);
    let columns = [
        find(path, &schema, &columns.source, source)?,
        find(path, &schema, &columns.target, target)?,
    ];
    let mut records = Records {
        file,
        path: path.into(),
        columns,
        next_group: 0,
        group: None,
        read: 0,
    };
    Ok(pairs_of(move || records.next_pair()))
}

/// The number of a column of text. Columns of structs are named as paths, such as `translation.en`.
fn find(
    path: &Path,
    schema: &SchemaDescriptor,
    column: &Option<Column>,
    language: &str,
) -> Result<usize> {
    let wanted = match column {
        Some(Column::Name(name)) => vec![name.clone()],
        Some(Column::Number(number)) => vec![number.to_string()],
        None => vec![language.into(), format!("translation.{language}")],
    };
    let names: Vec<String> = schema.columns().iter().map(|c| c.path().string()).collect();
    let found = wanted
        .iter()
        .find_map(|name| names.iter().position(|other| other == name));
    let Some(index) = found else {
        return Err(Error::Unreadable {
            problem: format!(
                "{}: no column `{}`",
                path.display(),
                wanted.join("`, nor `")
            ),
            hint: format!("its columns are {}", names.join(", ")),
        });
    };
    let column = schema.column(index);
    if column.physical_type() != Type::BYTE_ARRAY || column.max_rep_level() != 0 {
        return Err(Error::Unreadable {
            problem: format!(
                "{}: the column `{}` is not text",
                path.display(),
                names[index]
            ),
            hint: "give a column that has one text in each record as `source` or `target`".into(),
        });
    }
    Ok(index)
}

struct Records {
    file: SerializedFileReader<File>,
    path: PathBuf,
    columns: [usize; 2],
    next_group: usize,
    group: Option<Group>,
    read: u64,
}

/// A row group that is being read.
struct Group {
    sides: [Side; 2],
    left: i64, // records
}

/// One column of a row group.
struct Side {
    reader: ColumnReaderImpl<ByteArrayType>,
    max_level: i16,
    levels: Vec<i16>, // below the maximum is null
    values: Vec<ByteArray>,
    records: usize, // in the batch
    record: usize,
    value: usize,
}

impl Side {
    /// The next value. `None` is null.
    fn next(&mut self) -> parquet::errors::Result<Option<ByteArray>> {
        if self.record == self.records {
            self.levels.clear();
            self.values.clear();
            let (levels, values) = (Some(&mut self.levels), &mut self.values);
            let (records, ..) = self.reader.read_records(BATCH, levels, None, values)?;
            if records == 0 {
                return Err(ParquetError::EOF("a column ends too early".into()));
            }
            (self.records, self.record, self.value) = (records, 0, 0);
        }
        self.record += 1;
        let is_null =
            self.max_level > 0 && self.levels.get(self.record - 1) != Some(&self.max_level);
        if is_null {
            return Ok(None);
        }
        self.value += 1;
        let value = self.values.get(self.value - 1).cloned();
        let missing = || ParquetError::EOF("a value is missing".into());
        value.ok_or_else(missing).map(Some)
    }
}

impl Records {
    fn open_group(&self, index: usize) -> parquet::errors::Result<Group> {
        let group = self.file.get_row_group(index)?;
        let side = |column: usize| {
            let ColumnReader::ByteArrayColumnReader(reader) = group.get_column_reader(column)?
            else {
                return Err(ParquetError::General("a column is not text".into()));
            };
            let schema = group.metadata().schema_descr();
            Ok(Side {
                reader,
                max_level: schema.column(column).max_def_level(),
                levels: Vec::new(),
                values: Vec::new(),
                records: 0,
                record: 0,
                value: 0,
            })
        };
        Ok(Group {
            sides: [side(self.columns[0])?, side(self.columns[1])?],
            left: group.metadata().num_rows(),
        })
    }

    fn next_values(&mut self) -> parquet::errors::Result<Option<[Option<ByteArray>; 2]>> {
        loop {
            if let Some(group) = &mut self.group
                && group.left > 0
            {
                group.left -= 1;
                let [source, target] = &mut group.sides;
                return Ok(Some([source.next()?, target.next()?]));
            }
            if self.next_group == self.file.num_row_groups() {
                return Ok(None);
            }
            self.group = Some(self.open_group(self.next_group)?);
            self.next_group += 1;
        }
    }

    fn next_pair(&mut self) -> Result<Option<Pair>> {
        let values = guarded(|| self.next_values());
        let Some(values) = values.map_err(|e| damaged(&self.path, self.read, e))? else {
            return Ok(None);
        };
        self.read += 1;
        let schema = self.file.metadata().file_metadata().schema_descr();
        let text = |side: usize| {
            let name = || schema.column(self.columns[side]).path().string();
            let problem = match &values[side] {
                Some(value) => match std::str::from_utf8(value.data()) {
                    Ok(text) => return Ok(on_one_line(text.into())),
                    Err(_) => "not valid UTF-8",
                },
                None => "null, not text",
            };
            let problem = format!("the column `{}` is {problem}", name());
            Err(bad(&self.path, self.read, problem))
        };
        pair(&self.path, self.read, text(0)?, text(1)?).map(Some)
    }
}

fn damaged(path: &Path, record: u64, source: io::Error) -> Error {
    Error::Damaged {
        path: path.into(),
        kind: "Parquet",
        line: record,
        source,
    }
}

/// Calls the crate that reads Parquet, which can panic on damaged files. After that, nothing more is read.
fn guarded<T>(read: impl FnOnce() -> parquet::errors::Result<T>) -> io::Result<T> {
    let invalid = |problem: String| io::Error::new(io::ErrorKind::InvalidData, problem);
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(result) => result.map_err(|error| invalid(error.to_string())),
        Err(_) => Err(invalid("its pages do not fit together".into())),
    }
}
