use super::gzip;

/// A file that zstd wrote.
pub(super) fn run(bytes: &[u8]) {
    gzip::read(bytes);
}
