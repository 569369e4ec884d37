use super::fixture::{TOKENIZERS, check_ids, text};

/// Text that is translated: encoded by a tokenizer of each kind, alone and in a batch, and decoded.
pub(super) fn run(bytes: &[u8]) {
    let lines: Vec<&str> = text(bytes).lines().collect();
    for tokenizer in TOKENIZERS.iter() {
        let batch = tokenizer.encode_batch(&lines).expect("all text is encoded");
        for (line, ids) in lines.iter().zip(&batch) {
            assert_eq!(*ids, tokenizer.encode(line).expect("all text is encoded"));
            check_ids(tokenizer, ids);
            tokenizer.decode(ids).expect("all ids are decoded");
        }
    }
}
