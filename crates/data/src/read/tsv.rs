//! TSV: columns that are separated by tabs. There is no quoting: a quotation mark is text.

use super::{Pairs, bad, pair, short};
use crate::compression::Content;
use crate::input::Columns;
use crate::{Column, Error, Lines, Result};

/// Names of columns that an error lists.
const SHOWN: usize = 20;

pub(crate) fn read(content: Content, columns: &Columns) -> Result<Pairs> {
    let path = content.path.clone();
    let mut lines = Lines::of(content);
    let header = match columns.header {
        false => None,
        true => match lines.next().transpose()? {
            Some(header) => Some(header),
            None => return Ok(Box::new(std::iter::empty())),
        },
    };
    let names: Option<Vec<&str>> = header.as_ref().map(|header| header.split('\t').collect());
    let find = |column: &Option<Column>, side: usize, language: &str| {
        let name = match (column, &names) {
            (Some(Column::Number(number)), _) => return Ok(*number),
            (Some(Column::Name(name)), _) => name,
            (None, Some(_)) => language,
            (None, None) => return Ok(side),
        };
        let names = names.as_deref().unwrap_or_default();
        let found = names.iter().position(|other| *other == name);
        found.ok_or_else(|| {
            let shown = names.iter().take(SHOWN).map(|name| short(name));
            let more = (names.len() > SHOWN).then(|| format!("{} more", names.len() - SHOWN));
            let shown: Vec<String> = shown.chain(more).collect();
            Error::Unreadable {
                problem: format!("{}:1: no column {name:?}", path.display()),
                hint: format!("its columns are {}", shown.join(", ")),
            }
        })
    };
    let (source, target) = (&columns.languages.0, &columns.languages.1);
    let wanted = [
        find(&columns.source, 0, source)?,
        find(&columns.target, 1, target)?,
    ];
    Ok(Box::new(std::iter::from_fn(move || {
        let line = lines.next()?;
        let number = lines.count_read() as u64;
        Some(line.and_then(|line| {
            let [source, target] = wanted.map(|column| {
                let text = line.split('\t').nth(column);
                text.map(str::to_string).ok_or_else(|| {
                    let columns = line.split('\t').count();
                    let problem = format!("no column {column}: the line has {columns}, from 0");
                    bad(&path, number, problem)
                })
            });
            pair(&path, number, source?, target?)
        }))
    })))
}
