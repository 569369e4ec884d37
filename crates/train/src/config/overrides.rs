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
        let (key, value) = (key.trim(), value.trim());
        let is_toml = |toml: &String| toml.parse::<Table>().is_ok();
        // A bare word is text: `--set out=runs/mine` needs no quotes.
        let quoted = || format!("{key} = {}", Value::String(value.to_string()));
        let toml = Some(format!("{key} = {value}")).filter(is_toml);
        let toml = toml.or_else(|| Some(quoted()).filter(is_toml));
        let toml = toml.ok_or_else(|| error("not a key and a value"))?;
        if !sets_only(&toml, key) {
            return Err(error("not one key and its value"));
        }
        Ok(Self {
            text: text.to_string(),
            toml,
            key: renamed::current(key).to_string(),
        })
    }

    pub(super) fn document(&self) -> Result<Document<'_>> {
        let place = Place::CommandLine(slice::from_ref(&self.text));
        Document::parse(&self.toml, place)
    }

    /// Puts the value into a config that is still a table.
    fn apply(&self, root: &mut Table) -> Result<()> {
        let mut value = Value::Table(self.document()?.read()?);
        let mut names: Vec<&str> = self.key.split('.').map(str::trim).collect();
        for name in &names {
            let table = value.as_table_mut();
            let inner = table.and_then(|table| table.remove(*name));
            value = inner.expect("an override holds its own key");
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

/// Whether a TOML text sets this dotted key and no other, as a text of several lines may.
fn sets_only(toml: &str, key: &str) -> bool {
    let mut table: Table = toml.parse().unwrap_or_default();
    let mut names = key.split('.').map(str::trim).peekable();
    while let Some(name) = names.next() {
        let value = table.remove(name);
        if !table.is_empty() {
            return false;
        }
        match value {
            Some(Value::Table(inner)) if names.peek().is_some() => table = inner,
            value => return value.is_some() && names.peek().is_none(),
        }
    }
    false
}

/// The config of a file with these overrides.
pub(super) fn merge(file: &Document, overrides: &[Override]) -> Result<Config> {
    if overrides.is_empty() {
        return file.read();
    }
    let mut table = file.read()?;
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
