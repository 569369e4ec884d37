use std::path::{Path, PathBuf};

use attend_cli::Bars;
use attend_comm::Comm;
use attend_data::{BadLines, CorpusConfig, Lines};
use attend_infer::hub;

use super::Teacher;
use super::parts::{Parts, Task};
use crate::{Config, Error, Result};

/// Text in the target language.
#[derive(Clone, Debug)]
pub struct Monolingual {
    /// One sentence a line, plain or compressed.
    pub files: Vec<PathBuf>,
    /// What is put before the sources that are made of it. Without it, a model cannot tell them from text by people.
    pub tag: Option<String>,
    /// The share of this corpus, as in `[[data.corpora]]`.
    pub weight: Option<f64>,
}

/// The config with one more corpus: text in the target language, and its translations by a model of the other direction.
/// It is written to `folder`. What is there already is not made again.
pub fn back_translate(
    config: &Config,
    reverse: &Teacher,
    text: &Monolingual,
    folder: &Path,
    comm: &dyn Comm,
) -> Result<Config> {
    if !config.data.source_kind.is_text() {
        return Err(Error::NotText("back-translation"));
    }
    let mut corpora = config.data.as_corpora();
    corpora.push(CorpusConfig {
        path: Some(Parts::patterns(folder)),
        tag: text.tag.clone(),
        weight: text.weight,
        ..CorpusConfig::default()
    });
    // Errors now rather than after the work.
    let with_text = config.with_corpora(corpora)?;
    let files = text.files.iter().map(|file| hub::local_file(file, &Bars));
    let files = files.collect::<std::result::Result<Vec<_>, _>>()?;
    for file in &files {
        Lines::open(file)?;
    }
    let parts = Parts {
        folder,
        teacher: reverse,
        kept: &config.data.target,
        translated: &config.data.source,
        comm,
    };
    let skips = config.data.bad_lines == BadLines::Skip;
    let mut skipped = 0;
    parts.write(
        |sender| {
            for file in files {
                for line in Lines::open(file)? {
                    match line {
                        Err(error) if error.is_bad_line() && skips => skipped += 1,
                        Ok(line) if line.trim().is_empty() => {}
                        line => {
                            if sender.send(line?).is_err() {
                                return Ok(()); // nobody wants more
                            }
                        }
                    }
                }
            }
            Ok(())
        },
        |line: String| {
            vec![Task {
                text: line.clone(),
                kept: line,
            }]
        },
    )?;
    if skipped > 0 {
        tracing::warn!("{skipped} lines could not be read");
    }
    Ok(with_text)
}
