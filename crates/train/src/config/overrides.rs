use std::slice;

use toml::{Table, Value};

use super::document::Document;
use super::{Config, renamed};
use crate::toml_error::{Place, explain};
use crate::{Error, Result};

/// One value of the command line: `--set train.steps=100`.
pub(super) struct Override {
    /// As it was given.
    text: String,
    /// As TOML: `train.steps = 100`.
    toml: String,
    /// Its dotted key, with its present name.
    pub(super) key: String,
}

impl Override {
    /// Parses all overrides of a command line. Warns of old names.
    pub(super) fn parse_all(texts: &[String]) -> Result<Vec<Self>> {
        let overrides = texts.iter().map(|text| Self::parse(text));
        let overrides: Vec<Self> = overrides.collect::<Result<_>>()?;
        let documents = overrides.iter().map(Self::document);
        let documents: Vec<Document> = documents.collect::<Result<_>>()?;
        for document in &documents {
            for renamed in document.renamed() {
                let sets_new_name = |other: &Document| {
                    let mut keys = other.keys().into_iter();
                    other.renamed().is_empty() && keys.any(|written| written.key == renamed.new)
                };
                if documents.iter().any(sets_new_name) {
                    return Err(renamed.error(document.place_of(0)));
                }
            }
            document.warn_of_old_names();
        }
        Ok(overrides)
    }

    fn parse(text: &str) -> Result<Self> {
        let error = |message: &str| Error::Config {
            place: format!("--set {text}"),
            message: message.to_string(),
            hint: Some("write it as --set train.steps=100".to_string()),
        };
        let Some((key, value)) = text.split_once('=') else {
            return Err(error("no `=`"));
        };
        let not_a_pair = || error("not a key and a value");
        let key = dotted(key).ok_or_else(not_a_pair)?;
        let value = value.trim();
        // A bare word is text: `--set out=runs/mine` needs no quotes.
        let quoted = || format!("{key} = {}", Value::String(value.to_string()));
        let is_toml = |toml: &String| toml.parse::<Table>().is_ok();
        let toml = Some(format!("{key} = {value}")).filter(is_toml);
        let toml = toml.unwrap_or_else(quoted);
        let table: Table = toml.parse().map_err(|_| not_a_pair())?;
        // A value with a line end could go on with another key.
        if !holds_only(&table, &key) {
            return Err(error("not one key and its value"));
        }
        Ok(Self {
            text: text.to_string(),
            toml,
            key: renamed::current(&key).to_string(),
        })
    }

    pub(super) fn document(&self) -> Result<Document<'_>> {
        let place = Place::CommandLine(slice::from_ref(&self.text));
        Document::parse(&self.toml, place)
    }

    /// Puts the value into a config that is still a table.
    fn apply(&self, root: &mut Table) -> Result<()> {
        let mut value = Value::Table(self.document()?.read()?);
        let mut names: Vec<&str> = self.key.split('.').collect();
        for name in &names {
            let table = value.as_table_mut();
            let inner = table.and_then(|table| table.remove(*name));
            // A table under the old name of a key, which is not one.
            value = inner.ok_or_else(|| Error::Config {
                place: format!("--set {}", self.text),
                message: format!("`{}` is not a key", self.key),
                hint: None,
            })?;
        }
        let last = names.pop().unwrap_or_default();
        let mut table = root;
        for (depth, name) in names.iter().enumerate() {
            let entry = table.entry(*name).or_insert_with(|| Table::new().into());
            let Value::Table(inner) = entry else {
                let whole = names[..=depth].join(".");
                return Err(Error::Config {
                    place: format!("--set {}", self.text),
                    message: format!("`{name}` is {entry} and not a table"),
                    hint: Some(format!("set all of it: --set '{whole}={{ {last} = … }}'")),
                });
            };
            table = inner;
        }
        table.insert(last.to_string(), value);
        Ok(())
    }
}

/// A key without spaces or quotes, such as `train.steps`; `None` if the text is not one key. No key of a config
/// needs quotes.
fn dotted(key: &str) -> Option<String> {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let names: Vec<&str> = key.split('.').map(unquoted).collect();
    let bare = |name: &&str| !name.is_empty() && name.chars().all(is_bare);
    names.iter().all(bare).then(|| names.join("."))
}

/// A name without the spaces and the quotes around it.
fn unquoted(name: &str) -> &str {
    let name = name.trim();
    let inside = |quote| name.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or(inside('\'')).unwrap_or(name)
}

/// Whether a table has this key, and nothing beside it.
fn holds_only(table: &Table, key: &str) -> bool {
    if table.len() != 1 {
        return false;
    }
    match key.split_once('.') {
        None => table.contains_key(key),
        Some((name, rest)) => match table.get(name) {
            Some(Value::Table(inner)) => holds_only(inner, rest),
            _ => false,
        },
    }
}

/// The config of a file with these overrides, and with these values where the file has none.
pub(super) fn merge(file: &Document, overrides: &[Override], defaults: &Table) -> Result<Config> {
    if overrides.is_empty() && defaults.is_empty() {
        return file.read();
    }
    let mut table = file.read()?;
    fill(&mut table, defaults);
    for given in overrides {
        given.apply(&mut table)?;
    }
    let merged = table.to_string();
    toml::from_str(&merged).map_err(|error| match file.read::<Config>() {
        // The file's own mistakes come first, with their line.
        Err(own) => own,
        Ok(_) => {
            let texts: Vec<String> = overrides.iter().map(|given| given.text.clone()).collect();
            explain(&error, &merged, Place::CommandLine(&texts))
        }
    })
}

/// Adds the values that a table does not have. A table of alternatives, such as `model`, in which another one is
/// written stays as it is.
fn fill(table: &mut Table, defaults: &Table) {
    for (key, value) in defaults {
        match (table.get_mut(key), value) {
            (None, value) => {
                table.insert(key.clone(), value.clone());
            }
            (Some(Value::Table(inner)), Value::Table(defaults)) => {
                let chosen = key == "model" && !inner.is_empty();
                if !chosen || defaults.keys().all(|name| inner.contains_key(name)) {
                    fill(inner, defaults);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_fill_what_is_not_written_and_no_other_model() {
        let defaults: Table = "decode.beam = 6\nmodel.transformer = { heads = 8, dropout = 0.1 }"
            .parse()
            .unwrap();
        for (written, filled) in [
            (
                "",
                "decode.beam = 6\nmodel.transformer = { heads = 8, dropout = 0.1 }",
            ),
            (
                "decode.beam = 1\nmodel.transformer.dropout = 0.3",
                "decode.beam = 1\nmodel.transformer = { heads = 8, dropout = 0.3 }",
            ),
            (
                "model.recurrent.cell = \"gru\"",
                "decode.beam = 6\nmodel.recurrent.cell = \"gru\"",
            ),
        ] {
            let mut table: Table = written.parse().unwrap();
            fill(&mut table, &defaults);
            assert_eq!(table, filled.parse::<Table>().unwrap());
        }
    }

    fn key_of(text: &str) -> Option<String> {
        Override::parse(text).ok().map(|given| given.key)
    }

    #[test]
    fn a_key_is_read_with_or_without_quotes_and_spaces() {
        for text in [
            "train.steps=5",
            " train . steps = 5 ",
            "\"train\".steps=5",
            "'train'.\"steps\"=5",
        ] {
            assert_eq!(key_of(text).as_deref(), Some("train.steps"), "{text}");
        }
        for text in [
            "",
            "=5",
            "train.=5",
            "\"\"=5",
            "[train]\nsteps=5",
            "#\nseed=5",
        ] {
            assert_eq!(key_of(text), None, "{text}");
        }
    }

    #[test]
    fn a_key_below_an_old_name_is_an_error() {
        let given = Override::parse("train.translate.sentences=5").unwrap();
        let error = given.apply(&mut Table::new()).unwrap_err().to_string();
        assert!(
            error.ends_with("`train.translate.sentences` is not a key"),
            "{error}"
        );
    }

    #[test]
    fn an_override_that_sets_two_keys_is_refused() {
        for text in ["seed=1\nout = \"other\"", "seed=1\n[train]\nsteps=1"] {
            assert_eq!(key_of(text), None, "{text}");
        }
        assert_eq!(
            key_of("data.train=[\"a\",\n\"b\"]").as_deref(),
            Some("data.train")
        );
    }
}
