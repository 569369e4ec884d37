use attend_infer::Error;
use attend_infer::document::Paragraph;

use crate::commands::chunks::Chunk;

/// The lines of a chunk, and the error that comes after them. `first` is how many lines came before.
pub(super) fn paragraphs(
    chunk: Chunk,
    first: usize,
    has_prefix: bool,
) -> (Vec<Paragraph>, Option<Error>) {
    let mut paragraphs = Vec::with_capacity(chunk.lines.len());
    for (number, text) in (first..).zip(chunk.lines) {
        let (text, prefix) = match has_prefix {
            false => (text, None),
            true => match columns(&text) {
                Ok((source, prefix)) => (source.to_string(), prefix.map(String::from)),
                Err(found) => return (paragraphs, Some(wrong_columns(number + 1, found))),
            },
        };
        let number = number as u64;
        paragraphs.push(Paragraph {
            text,
            number,
            prefix,
        });
    }
    (paragraphs, chunk.error)
}

/// The source and the prefix, if it is not empty. An empty line needs no tab. An error is the number of columns.
fn columns(line: &str) -> Result<(&str, Option<&str>), usize> {
    let columns: Vec<&str> = line.split('\t').collect();
    match columns[..] {
        [""] => Ok(("", None)),
        [source, prefix] => Ok((source, (!prefix.trim().is_empty()).then_some(prefix))),
        _ => Err(columns.len()),
    }
}

fn wrong_columns(line: usize, found: usize) -> Error {
    let found = match found {
        1 => "no tab".to_string(),
        found => format!("{found} columns"),
    };
    Error::Usage {
        message: format!("line {line}: has {found}, but --prefix-column needs two columns"),
        hint: "write the source, a tab and the prefix, which may be empty".into(),
    }
}
