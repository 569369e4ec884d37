//! Config errors that say where, and what was probably meant.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};

use crate::{Error, Result};

/// Parses TOML; errors name `place` and the line.
pub(crate) fn parse<T: DeserializeOwned>(text: &str, place: &str) -> Result<T> {
    toml::from_str(text).map_err(|error| explain(&error, text, place))
}

pub(crate) fn explain(error: &toml::de::Error, text: &str, place: &str) -> Error {
    let message = error.message().to_string();
    let span = error.span();
    let path = span.as_ref().and_then(|span| {
        let root = DeTable::parse(text).ok()?;
        path_at(root.get_ref(), span)
    });
    let from_file = !place.starts_with("--set");
    let line = span.filter(|_| from_file).map(|span| {
        let line = text[..span.start.min(text.len())].matches('\n').count() + 1;
        format!(":{line}")
    });
    let place = format!("{place}{}", line.unwrap_or_default());
    let names = quoted(&message);
    if message.starts_with("unknown field") || message.starts_with("unknown variant") {
        let what = if message.starts_with("unknown field") {
            "key"
        } else {
            "value"
        };
        let unknown = names.first().copied().unwrap_or_default();
        let message = match path.as_deref().and_then(|path| path.rsplit_once('.')) {
            Some((table, _)) => format!("unknown {what} `{unknown}` in [{table}]"),
            None => format!("unknown {what} `{unknown}`"),
        };
        return Error::Config {
            place,
            message,
            hint: Some(suggestion(unknown, &names[1..])),
        };
    }
    // How serde says that an enum is a table of one key.
    if message.contains("wanted exactly 1 element") {
        return Error::Config {
            place,
            message: "[model] must have exactly one table".to_string(),
            hint: Some("keep one of [model.transformer], [model.recurrent], [model.snail]".into()),
        };
    }
    let message = match path {
        Some(path) => format!("{path}: {message}"),
        None => message,
    };
    // toml's own messages may go over several lines; an error is one.
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    Error::Config {
        place,
        message,
        hint: None,
    }
}

/// The names in backticks.
fn quoted(message: &str) -> Vec<&str> {
    message.split('`').skip(1).step_by(2).collect()
}

fn suggestion(unknown: &str, known: &[&str]) -> String {
    let nearest = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(unknown, name), *name))
        .min();
    match nearest {
        Some((distance, name)) if distance <= 1 + unknown.len().max(name.len()) / 2 => {
            format!("did you mean `{name}`?")
        }
        _ => format!("possible here: {}", known.join(", ")),
    }
}

/// The dotted name of the key or value at `span`.
fn path_at(table: &DeTable, span: &Range<usize>) -> Option<String> {
    table.iter().find_map(|(key, value)| {
        let name = key.get_ref().to_string();
        if key.span() == *span
            || value.span() == *span && !matches!(value.get_ref(), DeValue::Table(_))
        {
            return Some(name);
        }
        match value.get_ref() {
            DeValue::Table(inner) => Some(format!("{name}.{}", path_at(inner, span)?)),
            _ => None,
        }
    })
}
