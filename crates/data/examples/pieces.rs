//! Prints how a tokenizer file splits text: `pieces MODEL < LINES`.
//!
//! Each line of the input is a JSON string, so that a text can have line feeds. Each line of the output is an
//! object with its pieces and its ids. `scripts/parity/sentencepiece.sh` compares them with SentencePiece's.

use attend_data::Tokenizer;
use serde_json::json;
use std::io::{self, BufRead, Write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args()
        .nth(1)
        .ok_or("usage: pieces MODEL < LINES")?;
    let tokenizer = Tokenizer::load(path)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let text: String = serde_json::from_str(&line?)?;
        let (pieces, ids) = (tokenizer.pieces(&text)?, tokenizer.encode(&text)?);
        let decoded = tokenizer.decode(&ids)?;
        writeln!(
            out,
            "{}",
            json!({"pieces": pieces, "ids": ids, "decoded": decoded})
        )?;
    }
    out.flush()?;
    Ok(())
}
