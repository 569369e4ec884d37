//! The content of a file, mapped into memory or held in it.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::Path;

/// Read-only bytes. Those of a mapped file are read when they are used, and the system can drop them again.
pub enum Bytes {
    Mapped(memmap2::Mmap),
    Held(Vec<u8>),
}

impl Bytes {
    /// Maps a file. Nobody may change it while it is mapped.
    pub fn map(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        // SAFETY: a mapping is undefined behaviour if another process changes the file. The files of a cache or a
        // bundle are never changed after they were moved to their place: they are removed or replaced as a whole,
        // and a mapping keeps what it maps.
        #[allow(unsafe_code)]
        let map = unsafe { memmap2::Mmap::map(&file)? };
        Ok(Self::Mapped(map))
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Held(bytes) => bytes,
        }
    }
}
