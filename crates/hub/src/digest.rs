use std::fmt::Write;

use sha1::Sha1;
use sha2::{Digest as _, Sha256};

use crate::path::{is_commit, is_lower_hex};

/// What the hub says of a file's contents, in its ETag: the SHA-256 of a large file (LFS), or git's id of a
/// small one. It is also the name of the file in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Digest {
    Sha256(String),
    GitBlob(String),
}

impl Digest {
    /// Reads an ETag. `None` if it is neither of the two, and so perhaps no name for a file either.
    pub(crate) fn of_etag(etag: &str) -> Option<Self> {
        let etag = etag.strip_prefix("W/").unwrap_or(etag).trim_matches('"');
        match etag.len() {
            64 if is_lower_hex(etag) => Some(Self::Sha256(etag.into())),
            _ if is_commit(etag) => Some(Self::GitBlob(etag.into())),
            _ => None,
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Sha256(text) | Self::GitBlob(text) => text,
        }
    }

    /// Starts to hash contents of this size in the same way.
    pub(crate) fn hasher(&self, size: u64) -> Hasher {
        match self {
            Self::Sha256(_) => Hasher::Sha256(Sha256::new()),
            Self::GitBlob(_) => Hasher::GitBlob(Sha1::new_with_prefix(format!("blob {size}\0"))),
        }
    }
}

pub(crate) enum Hasher {
    Sha256(Sha256),
    GitBlob(Sha1),
}

impl Hasher {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(hasher) => hasher.update(bytes),
            Self::GitBlob(hasher) => hasher.update(bytes),
        }
    }

    pub(crate) fn finish(self) -> Digest {
        match self {
            Self::Sha256(hasher) => Digest::Sha256(hex(&hasher.finalize())),
            Self::GitBlob(hasher) => Digest::GitBlob(hex(&hasher.finalize())),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}"); // writing to a string cannot fail
    }
    text
}
