use super::gzip;

/// A file that xz wrote.
pub(super) fn run(bytes: &[u8]) {
    gzip::read(bytes);
}
