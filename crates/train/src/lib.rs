//! A config to a trained bundle. The loop is [`train`]; everything else serves it.

mod average;
mod batcher;
mod cache;
mod check;
mod checkpoint;
mod compare;
mod compute;
mod config;
mod consistency;
mod corpora;
mod curves;
mod doctor;
mod drift;
mod error;
mod freeze;
mod health;
mod init;
mod judge;
mod listing;
mod log;
mod machine;
mod memory_budget;
mod memory_size;
mod open;
mod optimizer;
mod prepare;
mod profile;
mod provenance;
mod ranks;
mod report;
mod run;
mod saver;
mod schedule;
mod setup;
mod shares;
mod stop;
mod storage;
mod synthetic;
mod tensorboard;
mod toml_error;
mod update;
mod validate;
mod verify;

use serde::{Deserialize, Serialize};

pub use average::{Averaged, Selection, average};
pub use cache::{CacheListing, remove_entries};
pub use check::{CorpusReport, Dropped, Problem, Report, Stage, Timing, check};
pub use compare::{Comparison, Parameters, compare};
pub use compute::Compute;
pub use config::{AdamConfig, Config, Metric, OnSaveError, TrainConfig};
pub use consistency::{ConsistencyConfig, ConsistencyKind, CutKind};
pub use curves::{Curves, Horizontal, Picture};
pub use doctor::{Diagnosis, Finding, Verdict, diagnose};
pub use drift::{Difference, differences};
pub use error::{Error, Result};
pub use listing::{Listing, RunSummary, list_runs};
pub use machine::machine_memory;
pub use memory_size::MemorySize;
pub use open::{ResumeOptions, Start};
pub use optimizer::Optimizer;
pub use prepare::{Prepared, prepare};
pub use profile::Profile;
pub use report::write_report;
pub use run::Run;
pub use schedule::{ScheduleConfig, ScheduleKind};
pub use stop::Stop;
pub use synthetic::{Monolingual, Teacher, back_translate, distill};
pub use update::{MicroBatch, Update};
pub use validate::Translated;
pub use verify::{Experiment, Verification};

/// How a training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// At its limit of steps, epochs or minutes.
    Limit,
    /// No validation was better for as long as patience allows.
    Patience,
    /// By a signal, with the exit status that it asks for.
    Signal(u8),
}

/// Trains until a limit, patience or a signal ends it. Everything is saved when it returns.
pub fn train(run: &mut Run, stop: &Stop) -> Result<Ending> {
    stop.defer();
    run.complete_validation(stop)?;
    let ending = loop {
        if let Some(ending) = run.ending(stop)? {
            break ending;
        }
        let mut update = run.next_update()?;
        for micro in 0..update.batches.len() {
            let loss = run.forward(&mut update, micro)?;
            loss.backward(1.0 / update.tokens as f64, run.model.weights().params())?;
        }
        run.update(&mut update)?;
        run.report(&update)?;
        let improved = run.validation_due() && run.validate(stop)?;
        if improved || run.save_due() {
            run.save_or_warn()?;
        }
    };
    run.finish()?;
    Ok(ending)
}
