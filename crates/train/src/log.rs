//! An event becomes a line of `metrics.jsonl`, a record for TensorBoard and a line on the terminal.

use std::time::{SystemTime, UNIX_EPOCH};

use attend_cli::{Bar, bar, print_line};
use attend_infer::run::{Event, RunFolder, TimedEvent};

use crate::config::TrainConfig;
use crate::storage::{self, Journal};
use crate::tensorboard::{self, TensorBoard};
use crate::{OnSaveError, Result};

/// Where events go.
pub(crate) struct Log {
    /// None on ranks that only compute.
    journal: Option<Journal>,
    tensorboard: Option<TensorBoard>,
    on_error: OnSaveError,
    bar: Option<Bar>,
}

impl Log {
    /// Opens a run's `metrics.jsonl`. Lines after `step` are dropped: the resumed run writes them again.
    /// `steps` is the step at which training ends, for the bar.
    pub(crate) fn open(
        run: &RunFolder,
        step: u64,
        steps: u64,
        config: &TrainConfig,
    ) -> Result<Self> {
        let path = run.log_path();
        let old = run.event_log()?.unwrap_or_default();
        let kept = old.up_to(step);
        if kept != old.bytes() {
            storage::write_file(&path, &kept)?;
        }
        let bar = bar(Some(steps));
        bar.start_at(step);
        let mut log = Self {
            journal: Some(Journal::open(&path)?),
            tensorboard: None,
            on_error: config.on_save_error,
            bar: Some(bar),
        };
        if !config.tensorboard {
            // They would no longer say what the log says.
            log.or_warn(tensorboard::remove(run, None))?;
            return Ok(log);
        }
        let mut tensorboard = TensorBoard::of(run, &kept.into(), now())?;
        log.or_warn(tensorboard.write())?;
        log.tensorboard = Some(tensorboard);
        Ok(log)
    }

    /// The log of a rank that only computes: nothing is written or shown.
    pub(crate) fn nowhere(config: &TrainConfig) -> Self {
        Self {
            journal: None,
            tensorboard: None,
            on_error: config.on_save_error,
            bar: None,
        }
    }

    pub(crate) fn event(&mut self, event: &Event) -> Result<()> {
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        let time = now();
        let line = TimedEvent { event, time };
        let line = serde_json::to_string(&line).map_err(candle_core::Error::wrap)?;
        let written = journal.append(&line);
        self.or_warn(written)?;
        if let Some(tensorboard) = &mut self.tensorboard {
            let written = tensorboard.event(event, time);
            self.or_warn(written)?;
        }
        print_line(&event.to_string());
        if let (Some(bar), Event::Step(step)) = (&self.bar, event) {
            bar.set_message(format!(
                "loss {:.3} · {:.0} tok/s",
                step.loss, step.tokens_per_second
            ));
        }
        Ok(())
    }

    /// All lines so far are on the disk when this returns.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.journal.as_mut().map_or(Ok(()), Journal::sync)
    }

    fn or_warn(&self, result: Result<()>) -> Result<()> {
        match (result, self.on_error) {
            (Err(error), OnSaveError::Warn) => {
                print_line(&format!(
                    "warning: {error}; trying again with the next line"
                ));
                Ok(())
            }
            (result, _) => result,
        }
    }

    /// Shows that a step is done.
    pub(crate) fn advance(&self, step: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(step);
        }
    }

    /// Prints a line for people, on standard error.
    pub(crate) fn print(&self, line: &str) {
        if self.journal.is_some() {
            print_line(line);
        }
    }

    /// Removes the bar: no more steps come.
    pub(crate) fn finish(&mut self) {
        self.bar = None;
    }
}

/// Seconds since 1970-01-01 00:00 UTC, rounded to milliseconds.
fn now() -> f64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    since_1970.unwrap_or_default().as_millis() as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_resumed_log_has_no_line_from_after_the_checkpoint() -> Result<()> {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::new(folder.path());
        let path = run.log_path();
        let line = |event: &str, step| format!("{{\"event\":\"{event}\",\"step\":{step}}}\n");
        let kept = [line("step", 1), line("step", 2), line("validation", 2)].concat();
        let dropped = [line("test", 2), line("step", 3), "{\"event\":\"st".into()].concat();
        fs::write(&path, format!("{kept}{dropped}")).unwrap();
        Log::open(&run, 2, 10, &TrainConfig::default())?;
        assert_eq!(fs::read_to_string(&path).unwrap(), kept);
        Ok(())
    }
}
