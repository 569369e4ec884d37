use std::path::Path;

use attend_data::{Corpus, Paths, Result};

/// A set of sentence pairs that is scored as one corpus.
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) corpus: Corpus,
}

impl Part {
    /// Splits a corpus into the pairs whose source is at most `longest` words long, the longest source of
    /// training, and the rest. An empty part is omitted.
    pub(crate) fn of(path: &Path, longest: usize) -> Result<Vec<Self>> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let corpus = read(path)?;
        let pairs = corpus.source.into_iter().zip(corpus.target);
        let (seen, longer): (Vec<_>, Vec<_>) =
            pairs.partition(|(source, _)| words(source) <= longest);
        let (seen, longer) = match (seen.is_empty(), longer.is_empty()) {
            (false, false) => (
                (format!("{name} to {longest} words"), seen),
                (format!("{name} beyond"), longer),
            ),
            _ => ((name.to_string(), seen), (name.to_string(), longer)),
        };
        let parts = [seen, longer].into_iter();
        parts
            .filter(|(_, pairs)| !pairs.is_empty())
            .map(|(name, pairs)| {
                let (source, target) = pairs.into_iter().unzip();
                let corpus = Corpus::new(source, target)?;
                Ok(Self { name, corpus })
            })
            .collect()
    }
}

/// Reads the English and German lines of a corpus.
pub(crate) fn read(path: &Path) -> Result<Corpus> {
    Corpus::read(&Paths::from(path.to_path_buf()), "en", "de", &())
}

/// The number of words in a line.
pub(crate) fn words(line: &str) -> usize {
    line.split(' ').count()
}
