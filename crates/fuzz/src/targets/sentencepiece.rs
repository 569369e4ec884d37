use attend_data::{Tokenizer, Tokenizers};

use super::fixture::check_ids;

const LINES: [&str; 6] = [
    "",
    "  a dog\truns ",
    "Äpfel, 3.5 </s> <pad>\u{10fffd}",
    "\0\t犬犬▁<0x41>",
    ">>de<< the [user]s",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
];

/// A model of SentencePiece, and a word that is added to it.
pub(super) fn run(bytes: &[u8]) {
    let Ok(tokenizer) = Tokenizer::from_sentencepiece(bytes) else {
        return;
    };
    check(&tokenizer);
    let words = ["Writer".to_string(), ">>xx<<".to_string()];
    if let Ok(more) = Tokenizers::Joint(tokenizer).with_added(&words) {
        check(more.target());
    }
}

/// Encodes and decodes with a tokenizer of SentencePiece.
pub(super) fn check(tokenizer: &Tokenizer) {
    let batch = tokenizer.encode_batch(&LINES).expect("all text is encoded");
    for (line, ids) in LINES.iter().zip(&batch) {
        assert_eq!(*ids, tokenizer.encode(line).expect("all text is encoded"));
        check_ids(tokenizer, ids);
        tokenizer.decode(ids).expect("all ids are decoded");
        tokenizer.pieces(line).expect("all text has pieces");
    }
    let every: Vec<u32> = (0..tokenizer.vocab_size() as u32).take(500).collect();
    tokenizer.decode(&every).expect("all ids are decoded");
}
