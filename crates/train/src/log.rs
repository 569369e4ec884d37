//! An event becomes a line of `metrics.jsonl` and a line (or a bar) on the terminal.

use std::fmt;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};

use crate::storage::{self, Journal};
use crate::{Error, OnSaveError, Result};

/// What a run reports.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Event {
    Step(Step),
    /// An update that was left out.
    Skipped(Skipped),
    /// An update whose loss stands out.
    Spike(Spike),
    Validation(Validation),
    Test(Scores),
}

/// Training since the last line.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    pub step: u64,
    pub epoch: u64,
    /// Smoothed cross-entropy per target token.
    pub loss: f64,
    pub learning_rate: f64,
    /// Norm of the last gradient, before clipping.
    pub gradient_norm: f64,
    /// Target tokens since the last line.
    pub tokens: u64,
    pub tokens_per_second: f64,
    /// Time spent training, over all resumptions.
    pub seconds: f64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Skipped {
    pub step: u64,
    /// How many in a row, this one included.
    pub in_a_row: u64,
    /// Smoothed cross-entropy per target token, and the norm of the gradient: `null` where they are not
    /// finite.
    pub loss: f64,
    pub gradient_norm: f64,
    /// Which pairs of the training data it was computed from, counted from 1.
    pub pairs: Vec<usize>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Spike {
    pub step: u64,
    pub loss: f64,
    /// Of the updates before it.
    pub average: f64,
    pub pairs: Vec<usize>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Validation {
    pub step: u64,
    /// Cross-entropy per target token.
    pub loss: f64,
    pub perplexity: f64,
    /// Share of target tokens that were the most likely word.
    pub accuracy: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bleu: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chrf: Option<f64>,
    /// Whether it is the best so far.
    pub best: bool,
}

/// The best checkpoint on the test set.
#[derive(Clone, Debug, Serialize)]
pub struct Scores {
    pub step: u64,
    pub bleu: f64,
    pub bleu_signature: String,
    pub chrf: f64,
    pub chrf_signature: String,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Event::Step(step) => write!(
                f,
                "step {} · epoch {} · loss {:.3} · lr {:.2e} · norm {:.2} · {:.0} tok/s",
                step.step,
                step.epoch + 1,
                step.loss,
                step.learning_rate,
                step.gradient_norm,
                step.tokens_per_second,
            ),
            Event::Skipped(skipped) => write!(
                f,
                "step {} · skipped, {} in a row: loss {}, gradient norm {} · pairs {}",
                skipped.step,
                skipped.in_a_row,
                skipped.loss,
                skipped.gradient_norm,
                some(&skipped.pairs),
            ),
            Event::Spike(spike) => write!(
                f,
                "step {} · loss {:.3} stands out: the average before was {:.3} · pairs {}",
                spike.step,
                spike.loss,
                spike.average,
                some(&spike.pairs),
            ),
            Event::Validation(v) => {
                let (loss, perplexity) = (v.loss, v.perplexity);
                write!(
                    f,
                    "step {} · valid loss {loss:.4} · perplexity {perplexity:.2}",
                    v.step
                )?;
                write!(f, " · accuracy {:.1}%", 100.0 * v.accuracy)?;
                if let (Some(bleu), Some(chrf)) = (v.bleu, v.chrf) {
                    write!(f, " · BLEU {bleu:.2} · chrF2 {chrf:.2}")?;
                }
                f.write_str(if v.best { " · best" } else { "" })
            }
            Event::Test(scores) => {
                let Scores {
                    step, bleu, chrf, ..
                } = scores;
                write!(f, "step {step} · test BLEU {bleu:.2} · chrF2 {chrf:.2}")
            }
        }
    }
}

/// Numbers of pairs for people: not too many.
pub(crate) fn some(pairs: &[usize]) -> String {
    const MANY: usize = 20;
    let shown: Vec<String> = pairs.iter().take(MANY).map(usize::to_string).collect();
    match pairs.len().saturating_sub(MANY) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Where events go.
pub struct Log {
    journal: Journal,
    on_error: OnSaveError,
    bar: Option<ProgressBar>,
}

impl Log {
    /// Opens a run's `metrics.jsonl`; lines after `step`, which a resumed run will write again, are
    /// dropped, so that each is there once.
    pub fn open(folder: &Path, step: u64, steps: u64, on_error: OnSaveError) -> Result<Self> {
        let path = folder.join("metrics.jsonl");
        let old = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read.map_err(|source| Error::Read {
                path: path.clone(),
                source,
            })?,
        };
        let text = String::from_utf8_lossy(&old);
        let lines = text.split_inclusive('\n');
        let kept: String = lines.filter(|line| upto(line, step)).collect();
        if kept.as_bytes() != old {
            storage::write_file(&path, kept.as_bytes())?;
        }
        Ok(Self {
            journal: Journal::open(&path)?,
            on_error,
            bar: io::stderr().is_terminal().then(|| bar(step, steps)),
        })
    }

    pub fn event(&mut self, event: &Event) -> Result<()> {
        let line = serde_json::to_string(event).map_err(candle_core::Error::wrap)?;
        let written = self.journal.append(&line);
        self.unless_tolerated(written)?;
        match (&self.bar, event) {
            (Some(bar), Event::Step(step)) => bar.set_message(format!(
                "loss {:.3} · {:.0} tok/s · lr {:.2e}",
                step.loss, step.tokens_per_second, step.learning_rate
            )),
            _ => self.say(&event.to_string()),
        }
        Ok(())
    }

    /// All lines so far are on the disk when this returns.
    pub fn sync(&mut self) -> Result<()> {
        self.journal.sync()
    }

    fn unless_tolerated(&self, result: Result<()>) -> Result<()> {
        match (result, self.on_error) {
            (Err(error), OnSaveError::Warn) => {
                self.say(&format!(
                    "warning: {error}; it is tried again with the next line"
                ));
                Ok(())
            }
            (result, _) => result,
        }
    }

    /// One step further.
    pub fn advance(&self, step: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(step);
        }
    }

    /// A line for people, on standard error.
    pub fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| to_stderr(line)),
            None => to_stderr(line),
        }
    }

    pub fn finish(&self) {
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

/// The JSON values of a log or a state, without the times in them, which differ between equal runs.
pub(crate) fn timeless(text: &str) -> Vec<serde_json::Value> {
    fn strip(value: &mut serde_json::Value) {
        if let Some(fields) = value.as_object_mut() {
            fields.retain(|key, _| key != "seconds" && key != "tokens_per_second");
            fields.values_mut().for_each(strip);
        }
    }
    let values = serde_json::Deserializer::from_str(text).into_iter::<serde_json::Value>();
    let mut values: Vec<_> = values.map_while(|value| value.ok()).collect();
    values.iter_mut().for_each(strip);
    values
}

/// Whether a line belongs to what was done by `step`; a test, which comes after the end, does not,
/// nor does half a line, cut by a kill.
fn upto(line: &str, step: u64) -> bool {
    #[derive(Deserialize)]
    struct Line {
        event: String,
        step: u64,
    }
    let kept = |line: Line| line.step <= step && line.event != "test";
    line.ends_with('\n') && serde_json::from_str(line).is_ok_and(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resumed_log_has_no_line_from_after_the_checkpoint() -> Result<()> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let line = |event: &str, step| format!("{{\"event\":\"{event}\",\"step\":{step}}}\n");
        let kept = [line("step", 1), line("step", 2), line("validation", 2)].concat();
        let dropped = [line("test", 2), line("step", 3), "{\"event\":\"st".into()].concat();
        fs::write(&path, format!("{kept}{dropped}")).unwrap();
        Log::open(folder.path(), 2, 10, OnSaveError::Stop)?;
        assert_eq!(fs::read_to_string(&path).unwrap(), kept);
        Ok(())
    }
}
