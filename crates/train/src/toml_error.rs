//! Errors of TOML that name the place, and a key or value that was probably meant.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::Error;

/// Where TOML comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'a> {
    /// A file, by its name.
    File(&'a str),
    /// The `--set` options of a command line.
    CommandLine(&'a [String]),
}

impl Place<'_> {
    /// `config.toml:12`, or `--set train.steps=0`.
    pub(crate) fn at(self, text: &str, offset: usize) -> String {
        match self {
            Place::File(name) => {
                let line = text[..offset.min(text.len())].matches('\n').count() + 1;
                format!("{name}:{line}")
            }
            Place::CommandLine(options) => format!("--set {}", options.join(" --set ")),
        }
    }
}

/// Makes an error of the TOML library one of ours. `text` is what was parsed.
pub(crate) fn explain(error: &toml::de::Error, text: &str, place: Place) -> Error {
    let message = error.message().to_string();
    let span = error.span();
    let path = span.as_ref().and_then(|span| {
        let root = DeTable::parse(text).ok()?;
        path_at(root.get_ref(), span)
    });
    let place = match (span, place) {
        (Some(span), place) => place.at(text, span.start),
        (None, Place::File(name)) => name.to_string(),
        (None, place) => place.at(text, 0),
    };
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
    // This is serde's message for an enum that must be a table with one key.
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
    // The library's messages can have several lines; ours have one.
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    Error::Config {
        place,
        message,
        hint: None,
    }
}

/// The names between backticks.
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
