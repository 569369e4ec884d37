//! Checks with real processes that a config's training, killed and resumed, ends with the same bits.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use attend_infer::run::{Link, RunFolder};
use attend_infer::sha256;

use crate::{Config, Error, Result, Stop};

/// The training to check.
#[derive(Clone, Debug)]
pub struct Experiment {
    pub config: PathBuf,
    pub overrides: Vec<String>,
    /// Steps of each run.
    pub steps: u64,
    /// How often the second run is killed.
    pub stops: u64,
    /// The program, and its options for threads and devices.
    pub program: PathBuf,
    pub compute: Vec<String>,
    /// The folder for the two runs.
    pub scratch: PathBuf,
    /// A signal ends the trainings too.
    pub stop: Stop,
}

/// The result of an [`Experiment`].
#[derive(Debug)]
pub struct Verification {
    /// SHA-256 of the final parameters, moments, averages, state and log of the uninterrupted run.
    pub unbroken: String,
    pub resumed: String,
    /// The steps that had been logged when the process was killed.
    pub killed_at: Vec<u64>,
}

impl Verification {
    /// Whether the run was killed at least once and no bit differs.
    pub fn is_exact(&self) -> bool {
        self.unbroken == self.resumed && !self.killed_at.is_empty()
    }
}

impl fmt::Display for Verification {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.killed_at.is_empty() {
            return write!(
                f,
                "the run ended before it could be killed: give it more --steps"
            );
        }
        let steps: Vec<String> = self.killed_at.iter().map(u64::to_string).collect();
        writeln!(f, "{}  unbroken", self.unbroken)?;
        writeln!(f, "{}  killed at steps {}", self.resumed, steps.join(", "))?;
        f.write_str(if self.is_exact() {
            "the same bits: this training resumes exactly"
        } else {
            "NOT the same bits"
        })
    }
}

impl Experiment {
    /// Trains twice, the second time with kills.
    pub fn perform(&self) -> Result<Verification> {
        Config::read(&self.config, &self.overrides)?; // reports errors in the config at once
        let (unbroken, broken) = (self.scratch.join("unbroken"), self.scratch.join("broken"));
        self.finish(self.start(&unbroken)?, &unbroken)?;
        let mut child = self.start(&broken)?;
        let mut killed_at = Vec::new();
        for stop in 1..=self.stops {
            let step = (self.steps * stop / (self.stops + 1)).max(1);
            if !self.wait_for(&mut child, &broken, step)? {
                break; // it has failed, or has ended already
            }
            child
                .kill()
                .and_then(|()| child.wait())
                .map_err(|source| self.failed("kill", source))?;
            killed_at.push(last_step(&broken));
            let mut resume = self.command("resume")?;
            resume.arg(&broken);
            child = self.spawn(resume)?;
        }
        self.finish(child, &broken)?;
        Ok(Verification {
            unbroken: outcome(&unbroken)?,
            resumed: outcome(&broken)?,
            killed_at,
        })
    }

    /// The training's stderr goes to a file, which is shown only if it fails.
    fn command(&self, name: &str) -> Result<Command> {
        let stderr = fs::File::create(self.stderr()).map_err(|source| Error::Write {
            path: self.stderr(),
            source,
        })?;
        let mut command = Command::new(&self.program);
        command.arg(name).args(&self.compute);
        command.stdout(Stdio::null()).stderr(stderr);
        Ok(command)
    }

    fn stderr(&self) -> PathBuf {
        self.scratch.join("stderr")
    }

    fn start(&self, out: &Path) -> Result<Child> {
        // Saves must be far enough apart for a kill between them, and every step must be logged.
        let save_every = (self.steps / (2 * self.stops + 3)).max(2);
        let mut command = self.command("run")?;
        command.arg(&self.config);
        let overrides = self.overrides.iter().cloned().chain([
            format!("out={}", out.display()),
            format!("train.steps={}", self.steps),
            format!("train.save_every={save_every}"),
            "train.log_every=1".to_string(),
        ]);
        for value in overrides {
            command.args(["--set", &value]);
        }
        self.spawn(command)
    }

    fn spawn(&self, mut command: Command) -> Result<Child> {
        command
            .spawn()
            .map_err(|source| self.failed("start", source))
    }

    /// Whether a training goes on. A signal to this process ends it.
    fn is_running(&self, child: &mut Child) -> Result<bool> {
        if self.stop.status().is_some() {
            let ended = child.kill().and_then(|()| child.wait());
            ended.map_err(|source| self.failed("kill", source))?;
            return Err(Error::Interrupted);
        }
        let ended = child.try_wait();
        Ok(ended
            .map_err(|source| self.failed("wait for", source))?
            .is_none())
    }

    /// Waits until a run has logged a step. Returns `false` if it ends before.
    fn wait_for(&self, child: &mut Child, run: &Path, step: u64) -> Result<bool> {
        while last_step(run) < step {
            if !self.is_running(child)? {
                return Ok(false);
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(true)
    }

    fn finish(&self, mut child: Child, run: &Path) -> Result<()> {
        while self.is_running(&mut child)? {
            thread::sleep(Duration::from_millis(10));
        }
        let status = child
            .wait()
            .map_err(|source| self.failed("wait for", source))?;
        if status.success() {
            return Ok(());
        }
        let stderr = fs::read_to_string(self.stderr()).unwrap_or_default();
        Err(Error::TrainingFailed {
            run: run.to_path_buf(),
            stderr: stderr.trim().to_string(),
        })
    }

    fn failed(&self, action: &'static str, source: std::io::Error) -> Error {
        Error::Process {
            action,
            program: self.program.clone(),
            source,
        }
    }
}

/// The last step in a run's log.
fn last_step(run: &Path) -> u64 {
    let log = RunFolder::new(run).event_log().ok().flatten();
    log.and_then(|log| log.last_step()).unwrap_or(0)
}

/// A hash of the final state and the log of a run, except for times.
fn outcome(run: &Path) -> Result<String> {
    let run = RunFolder::new(run);
    let checkpoint = run.linked_checkpoint(Link::Last)?.fingerprint();
    let log = run.event_log()?.unwrap_or_default().without_times();
    let log = serde_json::Value::from(log).to_string();
    Ok(sha256((checkpoint + &log).as_bytes()))
}
