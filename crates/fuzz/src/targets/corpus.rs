use std::io::Cursor;
use std::sync::Arc;

use attend_data::{Batches, Corpus, Dataset, Error, Keep, Lines, Position, Tokenizers};

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
    let Ok((dataset, report)) =
        Dataset::encode(&corpus, &tokenizers, Keep::ToTrain { max_length: 30 }, &())
    else {
        return;
    };
    assert_eq!(report.kept + report.empty + report.too_long, corpus.len());
    let mut batches = Batches::new(Arc::new(dataset), 40, 1, Position::START).expect("a batch");
    let mut pairs = 0;
    while batches.position().epoch == 0 {
        pairs += batches.next_batch().0.pairs.len();
    }
    assert_eq!(pairs, report.kept);
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
