//! The sentences that must not be trained on.

use sha2::{Digest, Sha256};
use std::collections::HashSet;

/// The sentences of the validation and test data, to find training pairs that have one of them. White space at the
/// ends does not matter, nor which and how much of it is between words. Case matters. The text must have been
/// normalised like the text that is looked up.
///
/// Only a hash of 128 bits is kept of each sentence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldOut {
    source: HashSet<u128>,
    target: HashSet<u128>,
}

impl HeldOut {
    /// No sentences.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a pair. A side without text is left out.
    pub fn insert(&mut self, source: &str, target: &str) {
        self.source.extend(hash(source));
        self.target.extend(hash(target));
    }

    /// Whether `source` is the source of a held-out pair, or `target` the target of one.
    pub fn contains(&self, source: &str, target: &str) -> bool {
        let is_in = |set: &HashSet<u128>, text: &str| {
            !set.is_empty() && hash(text).is_some_and(|hash| set.contains(&hash))
        };
        is_in(&self.source, source) || is_in(&self.target, target)
    }

    /// Whether there is no sentence.
    pub fn is_empty(&self) -> bool {
        self.source.is_empty() && self.target.is_empty()
    }

    /// A hash that is the same for the same sentences, in whatever order they came.
    pub(super) fn fingerprint(&self) -> u128 {
        let mut hasher = Sha256::new();
        for set in [&self.source, &self.target] {
            let mut hashes: Vec<u128> = set.iter().copied().collect();
            hashes.sort_unstable();
            hasher.update((hashes.len() as u64).to_le_bytes());
            for hash in hashes {
                hasher.update(hash.to_le_bytes());
            }
        }
        first_half(hasher)
    }
}

/// The hash of the words of a text, if it has any.
fn hash(text: &str) -> Option<u128> {
    let mut words = text.split_whitespace();
    let mut hasher = Sha256::new();
    hasher.update(words.next()?);
    for word in words {
        hasher.update(b" ");
        hasher.update(word);
    }
    Some(first_half(hasher))
}

fn first_half(hasher: Sha256) -> u128 {
    let digest = hasher.finalize();
    let bytes = digest.iter().take(16);
    bytes.fold(0, |number, byte| number << 8 | u128::from(*byte))
}
