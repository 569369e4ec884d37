use std::panic::resume_unwind;
use std::thread;

use attend_data::{Tokenizer, TokenizerConfig, TokenizerKind};

use super::fixture::{check_ids, text};

/// Bytes of the text. Training is slow, and a few words show all that it does.
const LONGEST: usize = 100;

/// Text that a tokenizer is trained on, after a byte that selects its kind and settings.
pub(super) fn run(bytes: &[u8]) {
    let kind = match bytes.first().map(|choice| choice % 3) {
        Some(0) => TokenizerKind::Bpe,
        Some(1) => TokenizerKind::Word,
        _ => TokenizerKind::Char,
    };
    // The library's cache of a BPE model stays in its thread when the model is dropped, so the thread must end.
    let thread = thread::scope(|scope| scope.spawn(|| check(kind, bytes)).join());
    thread.unwrap_or_else(|panic| resume_unwind(panic));
}

/// A tokenizer that was trained encodes and decodes the text, and is read as it was written.
pub(super) fn check(kind: TokenizerKind, bytes: &[u8]) {
    let Some((choice, rest)) = bytes.split_first() else {
        return;
    };
    let config = TokenizerConfig {
        kind,
        lowercase: choice & 4 != 0,
        min_frequency: u64::from(choice >> 3 & 1),
        vocab_size: if choice & 16 != 0 { 12 } else { 120 },
        ..TokenizerConfig::default()
    };
    let lines = text(&rest[..rest.len().min(LONGEST)]).lines();
    let Ok(tokenizer) = Tokenizer::train(&config, lines.clone()) else {
        return;
    };
    for line in lines.take(4) {
        let ids = tokenizer.encode(line).expect("all text is encoded");
        check_ids(&tokenizer, &ids);
        tokenizer.decode(&ids).expect("all ids are decoded");
    }
    if choice & 32 == 0 {
        return; // reading takes as long as all the rest
    }
    let again =
        Tokenizer::from_json(tokenizer.to_json().expect("JSON")).expect("what was trained is read");
    assert_eq!(again, tokenizer);
}
