use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// `manifest.json`: what the other files of a folder are. It is written last, so a folder that has
/// one is whole, and a file that does not fit it is damaged.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub files: BTreeMap<String, Entry>,
}

/// One file.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub bytes: u64,
    pub sha256: String,
}

impl Manifest {
    pub const NAME: &str = "manifest.json";

    /// The manifest of (name, bytes).
    pub fn of(files: &[(String, Vec<u8>)]) -> Self {
        let entries = files.iter().map(|(name, bytes)| {
            let entry = Entry {
                bytes: bytes.len() as u64,
                sha256: sha256(bytes),
            };
            (name.clone(), entry)
        });
        let files = entries.collect();
        Self { files }
    }

    pub fn to_json(&self) -> Vec<u8> {
        super::config::json(self)
    }

    /// The problem if it is not one.
    pub fn parse(json: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(json).map_err(|error| format!("not a manifest: {error}"))
    }
}

impl Entry {
    /// What is wrong with a file that should be this one, if anything.
    pub fn problem(&self, bytes: &[u8]) -> Option<String> {
        if bytes.len() as u64 != self.bytes {
            let found = bytes.len();
            return Some(format!("{found} bytes where {} were written", self.bytes));
        }
        let same = sha256(bytes) == self.sha256;
        (!same).then(|| "not what was written (its SHA-256 differs)".to_string())
    }
}

/// The SHA-256 of some bytes, in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
