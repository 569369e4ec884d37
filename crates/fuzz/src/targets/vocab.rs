use attend_data::{Tokenizer, Tokenizers};

use super::sentencepiece::check;

/// A small model, to put beside the vocabulary.
const MODEL: &[u8] = include_bytes!("../../seeds/sentencepiece/bpe.model");

/// The `vocab.json` of a MarianMT model.
pub(super) fn run(bytes: &[u8]) {
    let Ok(tokenizer) = Tokenizer::from_sentencepiece_and_vocab(MODEL, bytes) else {
        return;
    };
    check(&tokenizer);
    let files = Tokenizers::Joint(tokenizer.clone()).files();
    let (_, vocab) = files.last().expect("a vocabulary");
    let again =
        Tokenizer::from_sentencepiece_and_vocab(MODEL, vocab).expect("what is written is read");
    assert_eq!(again, tokenizer);
}
