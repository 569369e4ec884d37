use std::path::Path;

use attend_data::{Corpus, Paths, Result};

/// Sentences that are measured together.
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) corpus: Corpus,
}

impl Part {
    /// A corpus in two: what is at most as long as the longest source of training, and the rest. There may
    /// be only one of them.
    pub(crate) fn of(path: &Path, longest: usize) -> Result<Vec<Self>> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let corpus = read(path)?;
        let pairs = corpus.source.into_iter().zip(corpus.target);
        let (known, longer): (Vec<_>, Vec<_>) =
            pairs.partition(|(source, _)| words(source) <= longest);
        let (known, longer) = match (known.is_empty(), longer.is_empty()) {
            (false, false) => (
                (format!("{name} to {longest} words"), known),
                (format!("{name} beyond"), longer),
            ),
            _ => ((name.to_string(), known), (name.to_string(), longer)),
        };
        let parts = [known, longer].into_iter();
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

/// English and German lines.
pub(crate) fn read(path: &Path) -> Result<Corpus> {
    Corpus::read(&Paths::from(path.to_path_buf()), "en", "de")
}

pub(crate) fn words(line: &str) -> usize {
    line.split(' ').count()
}
