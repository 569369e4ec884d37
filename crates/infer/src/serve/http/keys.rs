use std::fmt;
use std::path::Path;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use crate::{Error, Result};

/// The keys of those who may ask. Only their hashes are kept.
#[derive(Clone, Default)]
pub struct Keys {
    hashes: Vec<[u8; 32]>,
}

impl Keys {
    /// One key on each line of a file. Empty lines, and those that begin with `#`, are not keys.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read {
            path: path.into(),
            source,
        })?;
        let lines = text.lines().map(str::trim);
        let keys = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let keys = Self {
            hashes: keys.map(hash).collect(),
        };
        if keys.is_empty() {
            return Err(Error::Usage {
                message: format!("{}: has no keys", path.display()),
                hint: "write one key on each line, such as `openssl rand -hex 32` prints".into(),
            });
        }
        Ok(keys)
    }

    /// Whether nobody needs a key.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Compares hashes, and all of them: the time tells neither how long a key is nor how much of one was right.
    pub fn contains(&self, key: &str) -> bool {
        let own = hash(key);
        let mut found = Choice::from(0);
        for hash in &self.hashes {
            found |= hash.ct_eq(&own);
        }
        found.into()
    }
}

fn hash(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

/// The key in `Authorization: Bearer KEY`.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} keys", self.hashes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_the_lines_of_a_file_without_comments() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys");
        std::fs::write(&file, "# whose\n one \r\n\nanother\n").unwrap();
        let keys = Keys::read(&file).unwrap();
        assert!(keys.contains("one") && keys.contains("another"));
        for other in ["", "on", "one ", "# whose", "ONE"] {
            assert!(!keys.contains(other), "{other}");
        }
        assert_eq!(format!("{keys:?}"), "2 keys");
        std::fs::write(&file, "# none\n\n").unwrap();
        let error = Keys::read(&file).unwrap_err();
        assert!(error.to_string().ends_with("has no keys"));
    }
}
