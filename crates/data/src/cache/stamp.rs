//! The content of a file by its SHA-256, which is computed once as long as the file does not change.

use super::{Cache, write_note};
use crate::hash::hex;
use crate::{Error, Progress, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A file that was changed within this time may change again without a new time stamp.
const SETTLED: Duration = Duration::from_secs(2);

/// What is known of a file without reading it. The time of its last change cannot be set by a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    path: PathBuf,
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

#[derive(Serialize, Deserialize)]
struct Known {
    stamp: Stamp,
    sha256: String,
}

impl Stamp {
    fn new(path: &Path, metadata: &Metadata) -> Self {
        Self {
            path: path.into(),
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    fn is_settled(&self) -> bool {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = since_epoch.unwrap_or_default().as_secs() as i64;
        now - self.changed.0.max(self.modified.0) > SETTLED.as_secs() as i64
    }
}

impl Cache {
    /// The SHA-256 of a file's content.
    pub(crate) fn hash_of(&self, path: &Path, progress: &dyn Progress) -> Result<String> {
        let hash = || {
            let mut file = File::open(path)?;
            let stamp = Stamp::new(&fs::canonicalize(path)?, &file.metadata()?);
            let name = hex(&Sha256::digest(stamp.path.as_os_str().as_encoded_bytes()));
            let note = self.folder().join("files").join(format!("{name}.json"));
            if let Some(known) = read_note(&note).filter(|known| known.stamp == stamp) {
                return Ok(known.sha256);
            }
            let settled = stamp.is_settled(); // before it is read
            let sha256 = digest(path, &mut file, stamp.size, progress)?;
            // Changed while it was read: the hash is of neither version, and is not remembered.
            let unchanged = Stamp::new(&stamp.path, &file.metadata()?) == stamp;
            if unchanged && settled {
                let known = Known {
                    stamp,
                    sha256: sha256.clone(),
                };
                let text = serde_json::to_vec(&known).map_err(io::Error::other)?;
                // Only saves time: a failure is no reason to stop.
                let _ = write_note(&note, &text);
            }
            Ok(sha256)
        };
        hash().map_err(|source: io::Error| Error::Io {
            path: path.into(),
            source,
        })
    }
}

fn read_note(path: &Path) -> Option<Known> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn digest(path: &Path, file: &mut File, size: u64, progress: &dyn Progress) -> io::Result<String> {
    const SHOWN: u64 = 1 << 28; // bytes that take long enough to say so
    let what = format!("checking {}", path.display());
    let _task = (size >= SHOWN).then(|| progress.start(&what, None));
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&hash.finalize())),
            read => hash.update(&buffer[..read]),
        }
    }
}
