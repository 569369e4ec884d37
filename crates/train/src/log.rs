//! An event becomes a line of `metrics.jsonl` and a line (or a bar) on the terminal.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use attend_infer::run::{Event, RunFolder};
use indicatif::{ProgressBar, ProgressStyle};

use crate::storage::{self, Journal};
use crate::{OnSaveError, Result};

/// Where events go.
pub(crate) struct Log {
    journal: Journal,
    on_error: OnSaveError,
    bar: Option<ProgressBar>,
}

impl Log {
    /// Opens a run's `metrics.jsonl`; lines after `step`, which a resumed run will write again, are
    /// dropped, so that each is there once.
    pub(crate) fn open(
        run: &RunFolder,
        step: u64,
        steps: u64,
        on_error: OnSaveError,
    ) -> Result<Self> {
        let path = run.log_path();
        let old = run.event_log()?.unwrap_or_default();
        let kept = old.up_to(step);
        if kept != old.bytes() {
            storage::write_file(&path, &kept)?;
        }
        Ok(Self {
            journal: Journal::open(&path)?,
            on_error,
            bar: io::stderr().is_terminal().then(|| bar(step, steps)),
        })
    }

    pub(crate) fn event(&mut self, event: &Event) -> Result<()> {
        let line = serde_json::to_string(event).map_err(candle_core::Error::wrap)?;
        let written = self.journal.append(&line);
        self.or_warn(written)?;
        match (&self.bar, event) {
            (Some(bar), Event::Step(step)) => bar.set_message(format!(
                "loss {:.3} · {:.0} tok/s · lr {:.2e}",
                step.loss, step.tokens_per_second, step.learning_rate
            )),
            _ => self.print(&event.to_string()),
        }
        Ok(())
    }

    /// All lines so far are on the disk when this returns.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.journal.sync()
    }

    fn or_warn(&self, result: Result<()>) -> Result<()> {
        match (result, self.on_error) {
            (Err(error), OnSaveError::Warn) => {
                self.print(&format!(
                    "warning: {error}; it is tried again with the next line"
                ));
                Ok(())
            }
            (result, _) => result,
        }
    }

    /// One step further.
    pub(crate) fn advance(&self, step: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(step);
        }
    }

    /// A line for people, on standard error.
    pub(crate) fn print(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| to_stderr(line)),
            None => to_stderr(line),
        }
    }

    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn to_stderr(line: &str) {
    // Nobody is left to tell if standard error is gone.
    let _ = writeln!(io::stderr(), "{line}");
}

fn bar(step: u64, steps: u64) -> ProgressBar {
    let bar = ProgressBar::new(steps).with_position(step);
    let template = "{bar:12} step {pos}/{len} · {msg} · {eta} left";
    let style = ProgressStyle::with_template(template);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message("starting");
    bar.enable_steady_tick(Duration::from_millis(500));
    bar.reset_eta();
    bar
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
        Log::open(&run, 2, 10, OnSaveError::Stop)?;
        assert_eq!(fs::read_to_string(&path).unwrap(), kept);
        Ok(())
    }
}
