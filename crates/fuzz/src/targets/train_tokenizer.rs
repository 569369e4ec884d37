use attend_data::{Tokenizer, TokenizerConfig, TokenizerKind};

use super::fixture::{check_ids, text};

/// Bytes of the text.
const LONGEST: usize = 200;

/// Text that a tokenizer is trained on, after a byte that selects its kind and settings.
pub(super) fn run(bytes: &[u8]) {
    let Some((choice, rest)) = bytes.split_first() else {
        return;
    };
    let config = TokenizerConfig {
        kind: match choice % 4 {
            0 => TokenizerKind::Bpe,
            1 => TokenizerKind::Unigram,
            2 => TokenizerKind::Word,
            _ => TokenizerKind::Char,
        },
        lowercase: choice & 4 != 0,
        min_frequency: u64::from(choice >> 3 & 1),
        vocab_size: if choice & 16 != 0 { 12 } else { 120 },
        ..TokenizerConfig::default()
    };
    // Training is slow. A few words show all that it does.
    let lines = text(&rest[..rest.len().min(LONGEST)]).lines();
    let Ok(tokenizer) = Tokenizer::train(&config, lines.clone()) else {
        return;
    };
    for line in lines.take(4) {
        let ids = tokenizer.encode(line).expect("all text is encoded");
        check_ids(&tokenizer, &ids);
        tokenizer.decode(&ids).expect("all ids are decoded");
    }
    let again = Tokenizer::from_json(tokenizer.to_json()).expect("what was trained is read");
    assert_eq!(again, tokenizer);
}
