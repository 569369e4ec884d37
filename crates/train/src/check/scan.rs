//! Reading the text of a config without doing anything with it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use attend_cli::Bars;
use attend_data::{Dataset, Error, HeldOut, Input, Progress, Reason, SourceKind, TextSource};

use super::report::Dropped;
use crate::Result;
use crate::corpora::Corpora;

/// Errors that are listed. All are counted.
const LISTED: usize = 20;
/// Characters of a sentence that are shown.
const SHOWN: usize = 120;

/// What was found in the files.
#[derive(Default)]
pub(super) struct Scan {
    /// The first errors, with the file in which each was found.
    pub(super) errors: Vec<(PathBuf, Error)>,
    pub(super) bad_lines: u64,
    /// Pairs of the training data whose source or target is in the validation or the test data.
    pub(super) overlap: BTreeMap<&'static str, u64>,
}

impl Scan {
    /// Reads all files to their end, or to damage.
    pub(super) fn read(corpora: &Corpora) -> Self {
        let mut scan = Self::default();
        let mut held_out = Vec::new();
        for (name, inputs) in corpora.held_out() {
            let mut sentences = HeldOut::new();
            for input in inputs {
                scan.read_input(corpora.kind(), input, |source, target| {
                    sentences.insert(source, target)
                });
            }
            held_out.push((name, sentences));
        }
        let task = Bars.start("reading all text", None);
        for text in corpora.texts() {
            for input in &text.inputs {
                let mut overlap = vec![0; held_out.len()];
                scan.read_input(corpora.kind(), input, |source, target| {
                    task.advance(1);
                    for (count, (_, sentences)) in overlap.iter_mut().zip(&held_out) {
                        *count += u64::from(sentences.contains(source, target));
                    }
                });
                for (count, (name, _)) in overlap.iter().zip(&held_out) {
                    *scan.overlap.entry(name).or_default() += count;
                }
            }
        }
        scan
    }

    fn read_input(&mut self, kind: SourceKind, input: &Input, mut take: impl FnMut(&str, &str)) {
        let file = || input.files().first().map(PathBuf::from).unwrap_or_default();
        let pairs = match input.open_as(kind) {
            Ok(pairs) => pairs,
            Err(error) => return self.errors.push((file(), error)),
        };
        let (listed, mut read) = (self.errors.len(), false);
        for pair in pairs {
            match pair {
                Ok(pair) => {
                    read = true;
                    take(&pair.source, &pair.target);
                }
                Err(error) => {
                    self.bad_lines += u64::from(error.is_bad_line());
                    if self.errors.len() < LISTED || !error.is_bad_line() {
                        self.errors.push((file(), error));
                    }
                }
            }
        }
        // If all lines are bad for the same reason, the first one tells it.
        if !read
            && self.errors[listed..]
                .iter()
                .all(|(_, error)| error.is_bad_line())
        {
            self.errors.truncate(listed + 1);
        }
    }
}

/// The first `shown` pairs that were dropped for each reason.
pub(super) fn dropped(text: &TextSource, dataset: &Dataset, shown: usize) -> Result<Vec<Dropped>> {
    let mut left: BTreeMap<Reason, u64> = BTreeMap::new();
    for reason in Reason::ALL {
        let count = dataset.counts().dropped(reason).min(shown as u64);
        if count > 0 {
            left.insert(reason, count);
        }
    }
    let mut found = Vec::new();
    let mut number = 0;
    for input in &text.inputs {
        for pair in input.open()? {
            if left.is_empty() {
                return Ok(found);
            }
            let reason = dataset.dropped(number);
            number += 1;
            let Some(count) = reason.and_then(|reason| left.get_mut(&reason)) else {
                continue;
            };
            *count -= 1;
            if *count == 0 {
                left.retain(|_, count| *count > 0);
            }
            let file = input.files().first().map(PathBuf::from).unwrap_or_default();
            let (line, source, target) = match pair {
                Ok(pair) => (Some(pair.line), short(&pair.source), short(&pair.target)),
                Err(error) => (error.line(), error.to_string(), String::new()),
            };
            found.push(Dropped {
                reason: reason.unwrap_or(Reason::BadLine),
                file,
                line,
                source,
                target,
            });
        }
    }
    Ok(found)
}

fn short(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}
