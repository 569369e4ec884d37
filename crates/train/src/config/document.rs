use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use super::added;
use super::renamed::{self, Renamed};
use crate::Result;
use crate::toml_error::{Place, explain};

/// A text of TOML, which is a config file or one `--set`, with the places of its keys. Keys that were
/// renamed have their new names.
pub(super) struct Document<'a> {
    text: &'a str,
    place: Place<'a>,
    root: Spanned<DeTable<'a>>,
    renamed: Vec<Renamed>,
}

/// A key that is written in a document.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Written {
    /// The dotted key, such as `train.steps`.
    pub(super) key: String,
    /// From the key's last name to the end of its value.
    pub(super) span: Range<usize>,
}

impl<'a> Document<'a> {
    pub(super) fn parse(text: &'a str, place: Place<'a>) -> Result<Self> {
        let root = DeTable::parse(text).map_err(|error| explain(&error, text, place))?;
        let mut document = Self {
            text,
            place,
            root,
            renamed: Vec::new(),
        };
        document.renamed = renamed::rename(document.root.get_mut()).map_err(|both| {
            let place = document.place_of(both.start);
            both.error(place)
        })?;
        Ok(document)
    }

    /// The same for the config of a run, which may be from before keys were added.
    pub(super) fn parse_saved(text: &'a str, place: Place<'a>) -> Result<Self> {
        let mut document = Self::parse(text, place)?;
        added::add(document.root.get_mut());
        Ok(document)
    }

    /// The document as a value. Errors name the place.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T> {
        T::deserialize(Deserializer::from(self.root.clone()))
            .map_err(|error| explain(&error, self.text, self.place))
    }

    /// All keys that hold values, in the order in which they are written.
    pub(super) fn keys(&self) -> Vec<Written> {
        let mut keys = Vec::new();
        list_keys(self.root.get_ref(), "", &mut keys);
        keys.sort_by_key(|written| written.span.start);
        keys
    }

    /// Where a byte of the text is, for errors: `config.toml:12`, or `--set train.steps=0`.
    pub(super) fn place_of(&self, offset: usize) -> String {
        self.place.at(self.text, offset)
    }

    pub(super) fn renamed(&self) -> &[Renamed] {
        &self.renamed
    }

    /// One line for each key that is written with an old name.
    pub(super) fn warn_of_old_names(&self) {
        for Renamed { old, new, start } in &self.renamed {
            let place = self.place_of(*start);
            tracing::warn!("{place}: `{old}` was renamed to `{new}`");
        }
    }
}

/// Appends the keys of a table and of the tables in it.
fn list_keys(table: &DeTable, prefix: &str, keys: &mut Vec<Written>) {
    for (name, value) in table.iter() {
        let key = match prefix {
            "" => name.get_ref().to_string(),
            prefix => format!("{prefix}.{}", name.get_ref()),
        };
        if let DeValue::Table(inner) = value.get_ref() {
            list_keys(inner, &key, keys);
        } else {
            let span = name.span().start..value.span().end;
            keys.push(Written { key, span });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_listed_in_their_order_with_their_places() {
        let text = "b = 1\n[t]\nz = [1,\n 2]\na = { y = \"x\" }\nd.e = true\n";
        let document = Document::parse(text, Place::File("file.toml")).unwrap();
        let keys: Vec<(String, &str, String)> = document
            .keys()
            .into_iter()
            .map(|Written { key, span }| {
                let place = document.place_of(span.start);
                (key, &text[span], place)
            })
            .collect();
        let expected = [
            ("b", "b = 1", "file.toml:1"),
            ("t.z", "z = [1,\n 2]", "file.toml:3"),
            ("t.a.y", "y = \"x\"", "file.toml:5"),
            ("t.d.e", "e = true", "file.toml:6"),
        ];
        assert_eq!(
            keys,
            expected.map(|(key, text, place)| (key.to_string(), text, place.to_string()))
        );
    }
}
