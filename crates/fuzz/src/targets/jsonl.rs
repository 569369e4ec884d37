use attend_data::Format;

use super::tsv::check;

/// One JSON object on each line.
pub(super) fn run(bytes: &[u8]) {
    check(Format::Jsonl, false, bytes);
}
