use std::path::Path;

use attend_data::Paths;
use serde::Deserialize;
use toml::Table;

use crate::bundle::Bundle;
use crate::run::{Checkpoint, Event, Provenance, RunFolder, TestScores};
use crate::{Result, file::read_regular};

/// Where a model comes from, as far as its folder tells: a checkpoint of a run tells most, a bundle nothing.
#[derive(Debug, Default)]
pub(super) struct Origin {
    /// The config of its training.
    config: Table,
    pub(super) provenance: Option<Provenance>,
    pub(super) step: Option<u64>,
    /// The scores of this very checkpoint on the run's test set.
    pub(super) scores: Option<TestScores>,
}

/// Sentences of the sample.
const SAMPLE: usize = 16;

impl Origin {
    /// What the folder of a checkpoint tells. What cannot be read is left out.
    pub(super) fn of(folder: &Path) -> Self {
        let text = |name: &str| {
            let bytes = read_regular(&folder.join(name)).ok()?;
            String::from_utf8(bytes).ok()
        };
        #[derive(Deserialize)]
        struct State {
            step: u64,
        }
        let state = text(Checkpoint::STATE).and_then(|json| serde_json::from_str(&json).ok());
        let step = state.map(|state: State| state.step);
        let provenance = text(Checkpoint::PROVENANCE);
        Self {
            config: text(Checkpoint::CONFIG)
                .and_then(|toml| toml.parse().ok())
                .unwrap_or_default(),
            provenance: provenance.and_then(|json| serde_json::from_str(&json).ok()),
            scores: step.and_then(|step| scores(folder, step)),
            step,
        }
    }

    /// The languages of source and target.
    pub(super) fn languages(&self) -> Option<(&str, &str)> {
        Some((self.text("data", "source")?, self.text("data", "target")?))
    }

    /// The model that the training started from.
    pub(super) fn init(&self) -> Option<&str> {
        self.text("train", "init")
    }

    fn text(&self, table: &str, key: &str) -> Option<&str> {
        self.config.get(table)?.get(key)?.as_str()
    }

    /// Sentences to translate: the first of the validation set, if it can be read. Otherwise a text is made of
    /// tokens of the vocabulary.
    pub(super) fn sample(&self, bundle: &Bundle) -> Result<Vec<String>> {
        match self.validation_lines() {
            Some(lines) if !lines.is_empty() => Ok(lines),
            _ => made_up(bundle),
        }
    }

    fn validation_lines(&self) -> Option<Vec<String>> {
        let valid = self.config.get("data")?.get("valid")?.clone();
        let paths: Paths = valid.try_into().ok()?;
        let (source, target) = self.languages()?;
        let inputs = paths.resolve(source, target).ok()?;
        let pairs = inputs.first()?.open().ok()?.take(SAMPLE);
        let lines = pairs.map(|pair| pair.map(|pair| pair.source));
        lines.collect::<std::result::Result<_, _>>().ok()
    }
}

/// The scores of a step in the log of the run around a checkpoint.
fn scores(folder: &Path, step: u64) -> Option<TestScores> {
    // `best` is a link: its parent by name is the run.
    let run = RunFolder::new(folder.parent()?);
    let log = run.event_log().ok().flatten()?;
    let tests = log.events().filter_map(|event| match event {
        Event::Test(scores) if scores.step == step => Some(scores),
        _ => None,
    });
    tests.last()
}

/// Lines of tokens from all over the vocabulary.
fn made_up(bundle: &Bundle) -> Result<Vec<String>> {
    const WORDS: usize = 9;
    let tokenizer = bundle.tokenizers.require_source()?;
    let special = [tokenizer.eos(), tokenizer.unk(), tokenizer.pad()];
    let ids = (0..tokenizer.vocab_size() as u32).filter(|id| !special.contains(id));
    let ids: Vec<u32> = ids.collect();
    let every = (ids.len() / (SAMPLE * WORDS)).max(1);
    // Neighbours in a line are far apart in the vocabulary.
    let lines = (0..SAMPLE).map(|line| {
        let line = ids
            .iter()
            .copied()
            .skip(line * every)
            .step_by(SAMPLE * every);
        let line: Vec<u32> = line.take(WORDS).collect();
        Ok(tokenizer.decode(&line)?)
    });
    lines.collect()
}
