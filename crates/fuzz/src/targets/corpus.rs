use std::io::Cursor;
use std::sync::Arc;

use attend_data::{
    Batches, CleanConfig, Cleaner, Corpus, Dataset, Error, HeldOut, Lines, Mixture, Position,
    Tokenizers,
};

use super::fixture::TOKENIZERS;
use super::gzip::is_compressed;

/// Two files of a corpus with a form feed between them, which become batches.
pub(super) fn run(bytes: &[u8]) {
    let middle = bytes.iter().position(|&byte| byte == b'\x0c');
    let (source, target) = bytes.split_at(middle.unwrap_or(bytes.len()));
    let target = target.strip_prefix(b"\x0c").unwrap_or_default();
    let (Ok(source), Ok(target)) = (lines(source), lines(target)) else {
        return;
    };
    let Ok(corpus) = Corpus::new(source, target) else {
        return;
    };
    let tokenizers = Tokenizers::Joint(TOKENIZERS[0].clone());
    let clean = CleanConfig::default();
    let cleaner = Cleaner::new(&clean, "en", "de", 30, HeldOut::new()).expect("a cleaner");
    let Ok(dataset) = Dataset::encode(&corpus, &tokenizers, &cleaner) else {
        return;
    };
    let counts = *dataset.counts();
    assert_eq!(counts.kept + counts.total_dropped(), corpus.len() as u64);
    let mixture = Arc::new(Mixture::of(dataset, 1));
    let mut batches = Batches::new(mixture, 40, None, Position::START).expect("a batch");
    let mut pairs = 0;
    while batches.position().epoch == 0 {
        let (batch, _) = batches.next_batch(0).expect("a batch");
        pairs += batch.pairs.len() as u64;
    }
    assert_eq!(pairs, counts.kept);
}

/// The lines of a file; as many as `wc -l` counts, and one more without a line end.
fn lines(file: &[u8]) -> Result<Vec<String>, Error> {
    let lines = Lines::new(Cursor::new(file.to_vec()), "corpus.txt")?;
    let lines: Vec<String> = lines.collect::<Result<_, _>>()?;
    if !is_compressed(file) {
        let text = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file);
        let ends = text.iter().filter(|&&byte| byte == b'\n').count();
        let unended = !text.is_empty() && !text.ends_with(b"\n");
        assert_eq!(lines.len(), ends + usize::from(unended));
    }
    Ok(lines)
}
