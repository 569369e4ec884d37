//! Errors in TOML, with their place and the key or value that was probably meant.

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
            hint: Some(
                "keep one of [model.transformer], [model.recurrent], [model.snail], [model.lstmn]"
                    .into(),
            ),
        };
    }
    let message = match path {
        Some(path) => format!("{path}: {message}"),
        None => message,
    };
    let message = plain_types(&message);
    // The library's messages can have several lines; ours have one.
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    Error::Config {
        place,
        message,
        hint: Some("`train config --schema` describes every key, with its type and range".into()),
    }
}

/// The names between backticks.
fn quoted(message: &str) -> Vec<&str> {
    message.split('`').skip(1).step_by(2).collect()
}

/// Replaces the names of Rust's types, which serde uses, by what a user writes.
fn plain_types(message: &str) -> String {
    let Some((before, expected)) = message.rsplit_once("expected ") else {
        return message.to_string();
    };
    let plain = match expected.trim() {
        "usize" | "u64" | "u32" => "an integer that is not negative",
        "isize" | "i64" | "i32" => "an integer",
        "f64" | "f32" => "a number",
        "bool" | "a boolean" => "true or false",
        table if table.starts_with("struct ") => "a table",
        _ => return message.to_string(),
    };
    format!("{before}expected {plain}")
}

/// The known name that was probably meant: one that is contained in the unknown one or contains it, or that
/// differs in at most a third of the letters.
fn suggestion(unknown: &str, known: &[&str]) -> String {
    let length = unknown.chars().count();
    let close = known.iter().filter_map(|&name| {
        let distance = strsim::damerau_levenshtein(unknown, name);
        let longest = length.max(name.chars().count());
        let is_part = length > 2 && (unknown.contains(name) || name.contains(unknown));
        (is_part || distance <= (longest / 3).max(1)).then_some((distance, name))
    });
    match close.min() {
        Some((_, name)) => format!("did you mean `{name}`?"),
        None => format!("possible here: {}", known.join(", ")),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_gets_the_key_that_was_meant_and_another_word_gets_the_list() {
        let known = ["seed", "out", "data", "model", "train", "decode"];
        for (unknown, hint) in [
            ("trian", "did you mean `train`?"),
            ("trains", "did you mean `train`?"),
            (
                "größe",
                "possible here: seed, out, data, model, train, decode",
            ),
            ("x", "possible here: seed, out, data, model, train, decode"),
        ] {
            assert_eq!(suggestion(unknown, &known), hint, "{unknown}");
        }
        assert_eq!(suggestion("n_heads", &["heads"]), "did you mean `heads`?");
        assert_eq!(
            suggestion("warmup_steps", &["warmup", "kind"]),
            "did you mean `warmup`?"
        );
    }

    #[test]
    fn types_are_named_as_users_know_them() {
        for (message, plain) in [
            (
                "invalid type: string \"a\", expected usize",
                "invalid type: string \"a\", expected an integer that is not negative",
            ),
            (
                "invalid type: map, expected f32",
                "invalid type: map, expected a number",
            ),
            ("expected a table", "expected a table"),
        ] {
            assert_eq!(plain_types(message), plain);
        }
    }
}
