//! JSON lines: one object on each line.

use super::{Pairs, bad, on_one_line, pair};
use crate::compression::Content;
use crate::input::Columns;
use crate::{Column, Lines};
use serde_json::Value;

pub(crate) fn read(content: Content, columns: &Columns) -> Pairs {
    let path = content.path.clone();
    let mut lines = Lines::of(content);
    let (source, target) = (&columns.languages.0, &columns.languages.1);
    let mut source = Field::new(&columns.source, source);
    let mut target = Field::new(&columns.target, target);
    Box::new(std::iter::from_fn(move || {
        let line = lines.next()?;
        let number = lines.count_read() as u64;
        Some(line.and_then(|line| {
            let mut sides = || -> std::result::Result<_, String> {
                if line.trim().is_empty() {
                    return Err("a blank line, not JSON".into());
                }
                let record: Value = serde_json::from_str(&line).map_err(|error| {
                    // For the parser, every line is line 1.
                    format!("not JSON: {error}").replace(" at line 1 column ", " at column ")
                })?;
                Ok((source.of(&record)?, target.of(&record)?))
            };
            let (source, target) = sides().map_err(|problem| bad(&path, number, problem))?;
            pair(&path, number, on_one_line(source), on_one_line(target))
        }))
    }))
}

/// The field of one side: the names that it can have. The first record that has one of them decides.
struct Field(Vec<String>);

impl Field {
    fn new(column: &Option<Column>, language: &str) -> Self {
        Self(match column {
            Some(Column::Name(name)) => vec![name.clone()],
            Some(Column::Number(number)) => vec![number.to_string()],
            None => vec![language.into(), format!("translation.{language}")],
        })
    }

    fn of(&mut self, record: &Value) -> std::result::Result<String, String> {
        let found = self.0.iter().enumerate();
        let found = found.filter_map(|(i, name)| Some((i, find(record, name)?)));
        let Some((index, value)) = found.into_iter().next() else {
            return Err(format!("no field `{}`", self.0.join("`, nor `")));
        };
        if self.0.len() > 1 {
            self.0 = vec![self.0.swap_remove(index)];
        }
        match value {
            Value::String(text) => Ok(text.clone()),
            other => Err(format!("the field `{}` is {}", self.0[0], kind(other))),
        }
    }
}

/// The value at a path such as `translation.en`. A key that contains the dot goes before a path.
fn find<'a>(record: &'a Value, path: &str) -> Option<&'a Value> {
    let fields = record.as_object()?;
    if let Some(value) = fields.get(path) {
        return Some(value);
    }
    let mut dots = path.match_indices('.');
    dots.find_map(|(dot, _)| find(fields.get(&path[..dot])?, &path[dot + 1..]))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null, not text",
        Value::Bool(_) => "true or false, not text",
        Value::Number(_) => "a number, not text",
        Value::String(_) => "text",
        Value::Array(_) => "a list, not text",
        Value::Object(_) => "an object, not text",
    }
}
