//! Checks a run for damage.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use attend_infer::run::{Checkpoint, Link, LinkTarget, LockState, RunFolder};
use attend_ops::Kernels;
use attend_ops::norm_of_all;
use candle_core::{Device, Tensor};

use crate::checkpoint::config_of;
use crate::drift::Changes;
use crate::{Config, Error, Result, storage};

/// What was found in a run's folder.
#[derive(Debug, Default)]
pub struct Diagnosis {
    pub findings: Vec<Finding>,
    /// The newest checkpoint that is not damaged: `train resume` continues from it.
    pub resumes_from: Option<u64>,
}

/// The result of checking one file, folder or link.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    pub what: String,
    pub verdict: Verdict,
    pub detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Intact,
    /// Unexpected, but nothing is lost.
    Warning,
    Damaged,
}

impl Diagnosis {
    /// Whether nothing is damaged, and the run can be resumed.
    pub fn is_intact(&self) -> bool {
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
                Verdict::Intact => "ok",
                Verdict::Warning => "warning",
                Verdict::Damaged => "DAMAGED",
            };
            let (what, detail, width) = (&finding.what, &finding.detail, width.unwrap_or(0));
            writeln!(f, "{what:width$}  {verdict:7}  {detail}")?;
        }
        match self.resumes_from {
            Some(step) => write!(f, "`train resume` continues from step {step}"),
            None => write!(f, "every checkpoint is damaged: this run cannot be resumed"),
        }
    }
}

/// Checks every file of a run. Changes nothing.
pub fn diagnose(folder: &Path) -> Result<Diagnosis> {
    let run = RunFolder::new(folder);
    if !run.is_used()? {
        return Err(Error::no_checkpoint(folder));
    }
    let mut diagnosis = Diagnosis::default();
    if let LockState::Held { pid } = run.lock() {
        let process = pid.map_or("a process".into(), |id| format!("process {id}"));
        let detail =
            format!("{process} is training here now: files that it is writing may look incomplete");
        diagnosis.add("lock", Verdict::Warning, detail);
    }
    let config = run.config_path();
    match Config::read_run(&config, &[]) {
        Err(_) if !config.exists() => {
            let detail = "missing; `train resume` takes the one in the checkpoint";
            diagnosis.add("config.toml", Verdict::Warning, detail);
        }
        Ok(_) => diagnosis.add("config.toml", Verdict::Intact, ""),
        Err(error) => diagnosis.add("config.toml", Verdict::Damaged, error.to_string()),
    }
    let mut damaged = Vec::new();
    for step in run.steps()? {
        let name = RunFolder::checkpoint_name(step);
        match run
            .checkpoint(step)
            .map_err(Error::from)
            .and_then(|checkpoint| contents(&checkpoint))
        {
            Ok(detail) => {
                diagnosis.add(name, Verdict::Intact, detail);
                diagnosis.resumes_from = Some(step);
            }
            Err(error) => {
                diagnosis.add(name, Verdict::Damaged, error.to_string());
                damaged.push(step);
            }
        }
    }
    if let Some(step) = diagnosis.resumes_from {
        compare_configs(&run, step, &mut diagnosis);
    }
    for link in [Link::Last, Link::Best] {
        check_link(&run, link, &damaged, &mut diagnosis);
    }
    log(&run, &mut diagnosis);
    for left in storage::leftovers(folder)? {
        let detail = "left by a process that was killed; `train resume` cleans it up";
        diagnosis.add(left, Verdict::Warning, detail);
    }
    Ok(diagnosis)
}

/// Checks the contents of a checkpoint whose files have the right hashes, and describes them.
fn contents(checkpoint: &Checkpoint) -> Result<String> {
    let config = config_of(checkpoint)?;
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
        Some(best) => {
            let value = config.train.metric.describe(best.value);
            format!(", best {value} at step {}", best.step)
        }
        None => String::new(),
    };
    let skipped = match state.health.skipped {
        0 => String::new(),
        skipped => format!(", {skipped} updates skipped"),
    };
    Ok(format!(
        "{count} parameters, epoch {}{best}{skipped}",
        state.position.epoch.saturating_add(1)
    ))
}

fn finite(tensors: &HashMap<String, Tensor>, path: PathBuf) -> Result<()> {
    for (name, tensor) in tensors {
        if !norm_of_all([tensor], Kernels::Fused)?.is_finite() {
            let problem = format!("`{name}` has non-finite values");
            return Err(Error::damaged(path, problem));
        }
    }
    Ok(())
}

/// Warns if the run's config differs from that of the checkpoint in a key that `train resume` refuses.
fn compare_configs(run: &RunFolder, step: u64, diagnosis: &mut Diagnosis) {
    let trained = run.checkpoint(step).map_err(Error::from);
    let trained = trained.and_then(|checkpoint| config_of(&checkpoint));
    let now = Config::read_run(&run.config_path(), &[]);
    let (Ok(trained), Ok(now)) = (trained, now) else {
        return; // reported already
    };
    if let Err(error) = Changes::check(&trained, &now, &[]) {
        let detail = format!("`train resume` refuses it: {error}");
        diagnosis.add("config.toml", Verdict::Damaged, detail);
    }
}

/// Checks where a link leads. `damaged` are the steps of damaged checkpoints.
fn check_link(run: &RunFolder, link: Link, damaged: &[u64], diagnosis: &mut Diagnosis) {
    let leads_to_damage = run
        .linked_step(link)
        .is_some_and(|step| damaged.contains(&step));
    let (verdict, detail) = match run.link(link) {
        LinkTarget::Checkpoint(target) if leads_to_damage => {
            let detail = format!("→ {}, which is damaged", target.display());
            (Verdict::Damaged, detail)
        }
        LinkTarget::Checkpoint(target) => (Verdict::Intact, format!("→ {}", target.display())),
        LinkTarget::Dangling(target) => {
            let detail = format!("→ {}, which does not exist", target.display());
            (Verdict::Warning, detail)
        }
        LinkTarget::Folder => (Verdict::Warning, "a folder, not a link".into()),
        LinkTarget::Missing if link == Link::Last => (Verdict::Warning, "missing".into()),
        LinkTarget::Missing => return, // nothing has been validated yet
    };
    diagnosis.add(link.name(), verdict, detail);
}

/// Checks that every line can be read, and that steps are in ascending order.
fn log(run: &RunFolder, diagnosis: &mut Diagnosis) {
    let name = "metrics.jsonl";
    let log = match run.event_log() {
        Ok(Some(log)) => log,
        Ok(None) => return diagnosis.add(name, Verdict::Damaged, "missing"),
        Err(error) => return diagnosis.add(name, Verdict::Damaged, error.to_string()),
    };
    let mut last = None;
    for line in log.lines() {
        let problem = match line.header() {
            Err(problem) => problem,
            Ok(header) if header.event != "step" => continue,
            Ok(header) => match last {
                Some(last) if header.step <= last => {
                    format!("step {} comes after step {last}", header.step)
                }
                _ => {
                    last = Some(header.step);
                    continue;
                }
            },
        };
        let detail = format!("line {}: {problem}", line.number);
        return diagnosis.add(name, Verdict::Warning, detail);
    }
    let detail = last.map_or("no steps yet".into(), |step| format!("up to step {step}"));
    diagnosis.add(name, Verdict::Intact, detail);
}
