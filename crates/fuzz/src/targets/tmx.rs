use attend_data::Format;

use super::tsv::check;

/// A translation memory.
pub(super) fn run(bytes: &[u8]) {
    check(Format::Tmx, false, bytes);
}
