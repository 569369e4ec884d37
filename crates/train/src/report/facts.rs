use std::fs;
use std::path::Path;

use attend_infer::Bundle;
use attend_infer::run::{
    Checkpoint, Event, EventLog, LockState, Provenance, RunFolder, Step, TestScores, Validation,
};
use candle_core::Device;
use serde::de::DeserializeOwned;

use crate::Config;

/// What the files of a run say. Nothing is verified: that is what `train doctor` does.
pub(super) struct Facts {
    pub(super) run: RunFolder,
    pub(super) name: String,
    pub(super) config: Option<Config>,
    /// The text of `config.toml`.
    pub(super) toml: Option<String>,
    pub(super) steps: Vec<Step>,
    pub(super) validations: Vec<Validation>,
    pub(super) test: Option<TestScores>,
    /// Updates that were skipped, and losses that spiked.
    pub(super) skipped: usize,
    pub(super) spikes: usize,
    /// When the last line of the log was written, in seconds since 1970-01-01.
    pub(super) written: Option<f64>,
    pub(super) provenance: Option<Provenance>,
    /// The model of the best checkpoint, or why it cannot be opened.
    pub(super) model: std::result::Result<Bundle, String>,
    /// Whether another process is training here.
    pub(super) is_running: bool,
}

impl Facts {
    pub(super) fn read(run: RunFolder, device: &Device) -> Self {
        let log = run.event_log().ok().flatten().unwrap_or_default();
        let toml = run.config().ok().flatten();
        let config = Config::read_run(&run.config_path(), &[]).ok();
        let best = match run.best_or_last() {
            Ok(Some(best)) => Ok(best),
            Ok(None) => Err("the run has no checkpoint yet".to_string()),
            Err(error) => Err(error.to_string()),
        };
        let provenance = best.as_ref().ok();
        let provenance = provenance.and_then(|best| json(&best.join(Checkpoint::PROVENANCE)));
        let model = best.and_then(|best| {
            let opened = Bundle::open(&best, device);
            opened.map_err(|error| error.to_string())
        });
        let other = |pid: Option<u32>| pid != Some(std::process::id());
        let is_running = matches!(run.lock(), LockState::Held { pid } if other(pid));
        let mut facts = Self {
            name: name(run.path()),
            run,
            config,
            toml,
            steps: Vec::new(),
            validations: Vec::new(),
            test: None,
            skipped: 0,
            spikes: 0,
            written: written(&log),
            provenance,
            model,
            is_running,
        };
        for event in log.events() {
            match event {
                Event::Step(step) => facts.steps.push(step),
                Event::Validation(validation) => facts.validations.push(validation),
                Event::Test(scores) => facts.test = Some(scores),
                Event::Skipped(_) => facts.skipped += 1,
                Event::Spike(_) => facts.spikes += 1,
            }
        }
        facts
    }

    /// The best validation so far.
    pub(super) fn best(&self) -> Option<&Validation> {
        self.validations
            .iter()
            .rev()
            .find(|validation| validation.best)
    }
}

fn written(log: &EventLog) -> Option<f64> {
    let times = log.lines().filter_map(|line| line.header().ok()?.time);
    times.last()
}

/// The last part of a folder's real name.
fn name(folder: &Path) -> String {
    let real = fs::canonicalize(folder);
    let real = real.as_deref().unwrap_or(folder);
    real.file_name()
        .unwrap_or(real.as_os_str())
        .to_string_lossy()
        .into_owned()
}

fn json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}
