use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Opens a file. A pipe or a device in its place is an error: reading it could wait, or go on, for ever.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    File::open(path)
}

/// The bytes of a file, which must be a regular one.
pub(crate) fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut open_regular(path)?, &mut bytes)?;
    Ok(bytes)
}

/// Whether a name is that of a file in the same folder: no path that leads elsewhere.
pub(crate) fn is_plain(name: &str) -> bool {
    Path::new(name).file_name() == Some(OsStr::new(name))
}
