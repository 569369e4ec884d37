//! Parallel text: two files, line by line.

use super::{Pair, Pairs};
use crate::{Error, FilePair, Lines, Result};

pub(crate) fn open(files: &FilePair) -> Result<Pairs> {
    let (mut source, mut target) = (Lines::open(&files.source)?, Lines::open(&files.target)?);
    let files = files.clone();
    let mut line = 0;
    Ok(Box::new(std::iter::from_fn(move || {
        line += 1;
        let pair = match (source.next()?, target.next()?) {
            (Ok(source), Ok(target)) => Ok(Pair {
                source,
                target,
                line,
            }),
            (Err(error), _) | (_, Err(error)) => Err(error),
        };
        let _ = (&files, None::<Error>);
        Some(pair)
    })))
}
