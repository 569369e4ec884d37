//! Small things of ours that some targets put beside the input.

use std::sync::LazyLock;

use attend_data::{Tokenizer, TokenizerConfig, TokenizerKind};

const LINES: [&str; 4] = [
    "a dog runs to the small house",
    "Die Katze sieht ein Häuschen am Fluss.",
    "the cat <b>sees</b> it, 3.5 times",
    "犬 走る",
];

/// A tokenizer of each kind.
pub(super) static TOKENIZERS: LazyLock<Vec<Tokenizer>> = LazyLock::new(|| {
    use TokenizerKind::{Bpe, Char, Unigram, Word};
    let kinds = [
        (Bpe, false),
        (Bpe, true),
        (Unigram, false),
        (Word, true),
        (Char, false),
    ];
    let trained = kinds.map(|(kind, lowercase)| {
        let config = TokenizerConfig {
            kind,
            lowercase,
            vocab_size: 90,
            min_frequency: 1,
            ..TokenizerConfig::default()
        };
        Tokenizer::train(&config, LINES.into_iter()).expect("a tokenizer")
    });
    trained.into()
});

/// Checks the ids of a line, which must end in `</s>`, and decodes them.
pub(super) fn check_ids(tokenizer: &Tokenizer, ids: &[u32]) {
    let (last, text) = ids.split_last().expect("at least </s>");
    assert_eq!(*last, tokenizer.eos());
    let special = [tokenizer.eos(), tokenizer.pad()];
    assert!(text.iter().all(|id| !special.contains(id)), "{ids:?}");
    assert!(
        text.iter()
            .all(|id| (*id as usize) < tokenizer.vocab_size())
    );
    assert!(text.iter().all(|id| tokenizer.token(*id).is_some()));
}

/// The input as text, or nothing.
pub(super) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}
