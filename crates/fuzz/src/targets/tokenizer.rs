use attend_data::Tokenizer;

use super::fixture::{check_ids, text};

const LINES: [&str; 4] = [
    "",
    "a dog runs",
    "Äpfel, 3.5 </s> <pad>\u{10fffd}",
    "\0\t犬犬▁ĠaĠb##",
];

/// A `tokenizer.json`, of this program or another.
pub(super) fn run(bytes: &[u8]) {
    let Ok(tokenizer) = Tokenizer::from_json(text(bytes)) else {
        return;
    };
    assert!(tokenizer.vocab_size() > 2);
    for line in LINES {
        // A tokenizer of another program may be unable to encode some text.
        if let Ok(ids) = tokenizer.encode(line) {
            check_ids(&tokenizer, &ids);
            let _ = tokenizer.decode(&ids);
        }
    }
    let _ = tokenizer.encode_batch(&LINES);
    let every: Vec<u32> = (0..tokenizer.vocab_size() as u32).take(500).collect();
    let _ = tokenizer.decode(&every);
    let again =
        Tokenizer::from_json(tokenizer.to_json().expect("JSON")).expect("what is written is read");
    assert_eq!(again.to_json(), tokenizer.to_json());
}
