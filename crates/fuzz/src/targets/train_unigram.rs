use attend_data::TokenizerKind;

use super::train_tokenizer::check;

/// Text that a unigram tokenizer is trained on, after a byte that selects its settings. Apart from the other
/// kinds because it takes a hundred times as long: the library sorts by tables of all Unicode characters.
pub(super) fn run(bytes: &[u8]) {
    check(TokenizerKind::Unigram, bytes);
}
