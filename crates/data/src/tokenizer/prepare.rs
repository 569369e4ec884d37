//! Tokenizers that are trained on corpora of any size, once.

use super::Tokenizers;
use super::sample::Sample;
use crate::cache::{Cache, META, VERSION};
use crate::clean::Counts;
use crate::hash::Hasher;
use crate::{EntryKind, Error, Progress, Result, TextSource, TokenizerConfig};
use attend_batch::SourceShape;
use serde_json::json;
use std::fs;
use std::path::Path;

impl Tokenizers {
    /// Trains tokenizers on a sample of these corpora, or opens those that were trained before in the same way.
    pub fn prepare(
        config: &TokenizerConfig,
        texts: &[TextSource],
        cache: &Cache,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |source| Error::Write { path, source }
        };
        let settings = serde_json::to_vec(config).map_err(|e| failed(cache.folder())(e.into()))?;
        let mut hash = Hasher::new("tokenizer");
        hash.add(&VERSION.to_le_bytes());
        hash.add(&settings);
        let identities = || -> Result<Vec<String>> {
            let all = texts.iter().map(|text| text.identity(cache, progress));
            all.collect()
        };
        let before = identities()?;
        for identity in &before {
            hash.add(identity.as_bytes());
        }
        let key = &hash.finish()[..32];
        cache.open_or_make(key, progress, open, |folder| {
            let sample = draw(config, texts, progress)?;
            let files: Vec<_> = texts.iter().flat_map(TextSource::files).collect();
            // What was read must be what the entry is named after.
            if identities()? != before {
                return Err(Error::ChangedMeanwhile { paths: files });
            }
            let is_text = |text: &TextSource| text.source == SourceShape::Text;
            let tokenizers = match texts.iter().all(is_text) {
                true => Self::train_on(config, &sample, progress)?,
                false => Self::train_target(config, &sample, progress)?,
            };
            tokenizers.save(folder)?;
            let meta = json!({ "version": VERSION, "kind": EntryKind::Tokenizer, "files": files });
            fs::write(folder.join(META), meta.to_string()).map_err(failed(folder))
        })
    }
}

fn open(folder: &Path) -> Result<Tokenizers> {
    // Written last: without it, the entry is not whole.
    let damaged = || Error::DamagedEntry {
        folder: folder.into(),
    };
    fs::metadata(folder.join(META)).map_err(|_| damaged())?;
    Tokenizers::load(folder).map_err(|_| damaged())
}

/// The pairs that a tokenizer is trained on, of those that no filter drops.
fn draw(config: &TokenizerConfig, texts: &[TextSource], progress: &dyn Progress) -> Result<Sample> {
    let mut sample = Sample::new(config.sample);
    for text in texts {
        let what = format!("reading {} for a tokenizer", text.name());
        let task = progress.start(&what, None);
        let mut counts = Counts::default();
        text.for_each_chunk(None, |chunk| {
            for checked in &chunk {
                match checked.dropped {
                    Some(reason) => counts.drop(reason),
                    None => {
                        counts.keep();
                        sample.push(&checked.pair.source, &checked.pair.target);
                    }
                }
            }
            task.advance(chunk.len() as u64);
            Ok(())
        })?;
        match counts {
            Counts { read: 0, .. } => return Err(text.empty()),
            Counts { kept: 0, .. } => {
                return Err(Error::NothingLeft {
                    counts: counts.into(),
                });
            }
            _ => {}
        }
    }
    Ok(sample)
}
