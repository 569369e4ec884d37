//! Listing a cache folder, and removing its entries.

use std::fmt;
use std::path::Path;

use attend_data::{Cache, CacheEntry, EntryKind, name_of};

use crate::listing::{describe_age, table};
use crate::{MemorySize, Result};

/// What a cache folder holds.
pub struct CacheListing(Vec<CacheEntry>);

impl CacheListing {
    pub fn read(folder: &Path) -> Result<Self> {
        Ok(Self(Cache::new(folder).entries()?))
    }
}

impl fmt::Display for CacheListing {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("the cache is empty");
        }
        let heading = ["key", "kind", "pairs", "size", "age", "made from"].map(String::from);
        let rows = self.0.iter().map(cells);
        let bytes = self.0.iter().map(|entry| entry.bytes).sum();
        let table = table(std::iter::once(heading).chain(rows));
        write!(f, "{table}\n{} in all", MemorySize(bytes).rounded())
    }
}

fn cells(entry: &CacheEntry) -> [String; 6] {
    let kind = match entry.kind {
        EntryKind::Corpus => "corpus",
        EntryKind::Tokenizer => "tokenizer",
        EntryKind::Partial => "partial",
        EntryKind::Damaged => "damaged",
    };
    let pairs = entry.pairs.map(|pairs| pairs.to_string());
    [
        entry.key.clone(),
        kind.into(),
        pairs.unwrap_or("-".into()),
        MemorySize(entry.bytes).rounded(),
        describe_age(entry.made.elapsed().unwrap_or_default()),
        name_of(&entry.files),
    ]
}

/// Removes entries of a cache by their names, or all of them. Returns how many were removed.
pub fn remove_entries(folder: &Path, keys: &[String], all: bool) -> Result<usize> {
    let cache = Cache::new(folder);
    let keys = match all {
        true => cache
            .entries()?
            .into_iter()
            .map(|entry| entry.key)
            .collect(),
        false => keys.to_vec(),
    };
    let mut removed = 0;
    for key in &keys {
        if cache.remove(key)? {
            removed += 1;
        } else {
            tracing::warn!("{key} stays: another process is making it");
        }
    }
    Ok(removed)
}
