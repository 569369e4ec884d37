use std::path::Path;

use attend_comm::Comm;
use attend_data::{Checked, CorpusConfig};

use super::Teacher;
use super::parts::{Parts, Task};
use crate::corpora::Corpora;
use crate::{Config, Error, Result};

/// The config with the teacher's translations as the targets of its training data, and with `and_original` the given
/// targets as well. They are written to `folder`, one folder for each corpus. What is there already is not made again.
///
/// The teacher sees a source as the student will: normalised, and with the tag of its corpus if the teacher knows that
/// tag. It does not see pairs that can be dropped before they are encoded.
pub fn distill(
    config: &Config,
    teacher: &Teacher,
    folder: &Path,
    and_original: bool,
    comm: &dyn Comm,
) -> Result<Config> {
    if !config.data.source_kind.is_text() {
        return Err(Error::NotText("distillation"));
    }
    let place = |number: usize| folder.join(number.to_string());
    let training = config.data.training().into_iter().enumerate();
    let mut all: Vec<CorpusConfig> = training
        .map(|(number, (_, corpus))| CorpusConfig {
            path: Some(Parts::patterns(&place(number))),
            source: None,
            target: None,
            format: None,
            header: false,
            ..corpus
        })
        .collect();
    if and_original {
        all.extend(config.data.as_corpora());
    }
    let distilled = config.with_corpora(all)?; // an error now rather than after the work
    for (number, text) in Corpora::find(config)?.texts().iter().enumerate() {
        let parts = Parts {
            folder: &place(number),
            teacher,
            kept: &config.data.source,
            translated: &config.data.target,
            comm,
        };
        let tag = text.tag.as_deref().unwrap_or_default();
        let tag_is_known = teacher.knows(tag);
        let task = |checked: Checked| {
            let source = checked.pair.source;
            let kept = source.strip_prefix(tag).unwrap_or(&source).trim_start();
            let kept = kept.to_string();
            let text = if tag_is_known { source } else { kept.clone() };
            Task { text, kept }
        };
        parts.write(
            |sender| text.send(sender),
            |pairs: Vec<Checked>| {
                let pairs = pairs.into_iter().filter(|pair| pair.dropped.is_none());
                pairs.map(task).collect()
            },
        )?;
    }
    Ok(distilled)
}
