//! The tokens of a vocabulary and their ids, and the `vocab.json` of MarianMT models: `{"token": id}`.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use std::collections::HashMap;
use std::fmt;

/// Tokens with the ids 0, 1, 2 and so on.
#[derive(Debug, PartialEq)]
pub(super) struct Vocabulary {
    tokens: Vec<String>,
    ids: HashMap<String, u32>,
}

impl Vocabulary {
    pub(super) fn new(tokens: Vec<String>) -> Result<Self, String> {
        let mut ids = HashMap::with_capacity(tokens.len());
        for (id, token) in (0..).zip(&tokens) {
            if ids.insert(token.clone(), id).is_some() {
                return Err(format!("the token {token:?} is listed twice"));
            }
        }
        Ok(Self { tokens, ids })
    }

    /// Reads a `vocab.json`. Every id from 0 to the highest must be there once.
    pub(super) fn parse(json: &[u8]) -> Result<Self, String> {
        let Entries(mut entries) = serde_json::from_slice(json).map_err(|e| e.to_string())?;
        entries.sort_by_key(|(_, id)| *id);
        match (0u64..).zip(&entries).find(|(index, (_, id))| index != id) {
            None => Self::new(entries.into_iter().map(|(token, _)| token).collect()),
            Some((index, (_, id))) if *id < index => Err(format!("two tokens have the id {id}")),
            Some((index, _)) => Err(format!(
                "no token has the id {index}, but there are higher ids"
            )),
        }
    }

    /// The same vocabulary as `vocab.json`, with one token on each line.
    pub(super) fn to_json(&self) -> String {
        let lines = self.tokens.iter().zip(0..).map(|(token, id): (_, u32)| {
            let token = serde_json::Value::from(&**token);
            format!("  {token}: {id}")
        });
        let lines: Vec<_> = lines.collect();
        format!("{{\n{}\n}}\n", lines.join(",\n"))
    }

    pub(super) fn tokens(&self) -> &[String] {
        &self.tokens
    }

    pub(super) fn token(&self, id: u32) -> Option<&str> {
        self.tokens.get(id as usize).map(String::as_str)
    }

    pub(super) fn id(&self, token: &str) -> Option<u32> {
        self.ids.get(token).copied()
    }
}

struct Entries(Vec<(String, u64)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor;
        impl<'de> Visitor<'de> for EntriesVisitor {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object of tokens and their ids")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(EntriesVisitor)
    }
}
