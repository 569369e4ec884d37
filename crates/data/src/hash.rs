//! SHA-256 of a sequence of values.

use sha2::{Digest, Sha256};

/// A hash of values, each with its length, so that no two sequences of values have the same bytes.
pub(crate) struct Hasher(Sha256);

impl Hasher {
    /// `purpose` tells apart hashes of the same values.
    pub(crate) fn new(purpose: &str) -> Self {
        let mut hasher = Self(Sha256::new());
        hasher.add(purpose.as_bytes());
        hasher
    }

    pub(crate) fn add(&mut self, value: &[u8]) {
        self.0.update((value.len() as u64).to_le_bytes());
        self.0.update(value);
    }

    /// In hexadecimal digits.
    pub(crate) fn finish(self) -> String {
        hex(&self.0.finalize())
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
