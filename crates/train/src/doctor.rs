//! Whether a run is sound, and what is not.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use attend_ops::Path as OpPath;
use attend_ops::norm_of_all;
use candle_core::{Device, Tensor};
use serde::Deserialize;

use crate::storage::{self, Lock};
use crate::{Checkpoint, Checkpoints, Config, Error, Result};

/// What was found in a run's folder.
#[derive(Debug, Default)]
pub struct Diagnosis {
    pub findings: Vec<Finding>,
    /// The newest sound checkpoint: where `train resume` would go on.
    pub resumes_from: Option<u64>,
}

/// One thing that was looked at.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    pub what: String,
    pub verdict: Verdict,
    pub detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Sound,
    /// Not as it should be, but nothing is lost.
    Odd,
    Damaged,
}

impl Diagnosis {
    /// Whether all of it is sound, and the run can be resumed.
    pub fn is_sound(&self) -> bool {
        let damaged = |finding: &Finding| finding.verdict == Verdict::Damaged;
        self.resumes_from.is_some() && !self.findings.iter().any(damaged)
    }

    fn add(&mut self, what: impl Into<String>, verdict: Verdict, detail: impl Into<String>) {
        self.findings.push(Finding {
            what: what.into(),
            verdict,
            detail: detail.into(),
        });
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let width = self.findings.iter().map(|finding| finding.what.len()).max();
        for finding in &self.findings {
            let verdict = match finding.verdict {
                Verdict::Sound => "sound",
                Verdict::Odd => "odd",
                Verdict::Damaged => "DAMAGED",
            };
            let (what, detail, width) = (&finding.what, &finding.detail, width.unwrap_or(0));
            writeln!(f, "{what:width$}  {verdict:7}  {detail}")?;
        }
        match self.resumes_from {
            Some(step) => write!(f, "`train resume` goes on from step {step}"),
            None => write!(f, "no checkpoint is sound: this run cannot be resumed"),
        }
    }
}

/// Reads all of a run, and changes nothing.
pub fn diagnose(folder: &Path) -> Result<Diagnosis> {
    let checkpoints = Checkpoints::of(folder);
    let steps = checkpoints.steps()?;
    if steps.is_empty() && !folder.join("config.toml").exists() {
        return Err(Error::NoCheckpoint(folder.to_path_buf()));
    }
    let mut diagnosis = Diagnosis::default();
    if let Some(process) = Lock::held(folder) {
        let process = process.map_or("a process".into(), |id| format!("process {id}"));
        let detail = format!("{process} trains here now: what it is writing may look odd");
        diagnosis.add("lock", Verdict::Odd, detail);
    }
    let config = folder.join("config.toml");
    match Config::read(&config, &[]) {
        Err(_) if !config.exists() => {
            let detail = "missing; `train resume` takes that of the checkpoint";
            diagnosis.add("config.toml", Verdict::Odd, detail);
        }
        Ok(_) => diagnosis.add("config.toml", Verdict::Sound, ""),
        Err(error) => diagnosis.add("config.toml", Verdict::Damaged, error.to_string()),
    }
    for &step in &steps {
        let name = format!("checkpoint-{step}");
        match checkpoints.read(step).and_then(|sound| contents(&sound)) {
            Ok(detail) => {
                diagnosis.add(name, Verdict::Sound, detail);
                diagnosis.resumes_from = Some(step);
            }
            Err(error) => diagnosis.add(name, Verdict::Damaged, error.to_string()),
        }
    }
    for link in ["last", "best"] {
        pointer(folder, link, &mut diagnosis);
    }
    log(&folder.join("metrics.jsonl"), &mut diagnosis);
    for left in storage::leftovers(folder)? {
        let detail = "left by a process that ended half way; `train resume` sets it right";
        diagnosis.add(left, Verdict::Odd, detail);
    }
    Ok(diagnosis)
}

/// Looks into a checkpoint whose files are what was written; says what it holds.
fn contents(checkpoint: &Checkpoint) -> Result<String> {
    checkpoint.config()?;
    let (parameters, moments) = (
        checkpoint.parameters(&Device::Cpu)?,
        checkpoint.optimizer(&Device::Cpu)?,
    );
    for (file, tensors) in [("model", &parameters), ("optimizer", &moments)] {
        finite(
            tensors,
            checkpoint.folder.join(format!("{file}.safetensors")),
        )?;
    }
    let count: usize = parameters.values().map(Tensor::elem_count).sum();
    let state = &checkpoint.state;
    let best = match state.best {
        Some(best) => format!(", best {:.4} at step {}", best.value, best.step),
        None => String::new(),
    };
    let skipped = match state.health.skipped {
        0 => String::new(),
        skipped => format!(", {skipped} updates skipped"),
    };
    Ok(format!(
        "{count} parameters, epoch {}{best}{skipped}",
        state.position.epoch + 1
    ))
}

fn finite(tensors: &HashMap<String, Tensor>, path: PathBuf) -> Result<()> {
    for (name, tensor) in tensors {
        if !norm_of_all([tensor], OpPath::Fused)?.is_finite() {
            let problem = format!("`{name}` has values that are not finite");
            return Err(Error::Damaged { path, problem });
        }
    }
    Ok(())
}

fn pointer(folder: &Path, link: &str, diagnosis: &mut Diagnosis) {
    let path = folder.join(link);
    match fs::read_link(&path) {
        Ok(target) if path.exists() => {
            diagnosis.add(link, Verdict::Sound, format!("→ {}", target.display()));
        }
        Ok(target) => {
            let detail = format!("→ {}, which is not there", target.display());
            diagnosis.add(link, Verdict::Odd, detail);
        }
        Err(_) if path.exists() => diagnosis.add(link, Verdict::Odd, "a folder, not a link"),
        Err(_) if link == "last" => diagnosis.add(link, Verdict::Odd, "missing"),
        Err(_) => {}
    }
}

/// Every line is whole, and training steps rise.
fn log(path: &Path, diagnosis: &mut Diagnosis) {
    #[derive(Deserialize)]
    struct Line {
        event: String,
        step: u64,
    }
    let name = "metrics.jsonl";
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => return diagnosis.add(name, Verdict::Damaged, error.to_string()),
    };
    let mut last = None;
    for (number, text) in text.lines().enumerate() {
        let problem = match serde_json::from_str::<Line>(text) {
            Err(error) => error.to_string(),
            Ok(line) if line.event == "step" && last.is_some_and(|last| line.step <= last) => {
                format!("step {} comes after step {}", line.step, last.unwrap_or(0))
            }
            Ok(line) => {
                if line.event == "step" {
                    last = Some(line.step);
                }
                continue;
            }
        };
        let detail = format!("line {}: {problem}", number + 1);
        return diagnosis.add(name, Verdict::Odd, detail);
    }
    let detail = last.map_or("no steps yet".into(), |step| format!("up to step {step}"));
    diagnosis.add(name, Verdict::Sound, detail);
}
