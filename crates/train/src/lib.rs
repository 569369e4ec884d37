//! A config to a trained bundle. The loop is [`train`]; everything else serves it.

mod average;
mod checkpoint;
mod config;
mod error;
mod log;
mod open;
mod optimizer;
mod profile;
mod run;
mod schedule;
mod stop;
mod storage;
mod toml_error;
mod validate;

pub use average::average;
pub use checkpoint::{Best, Checkpoint, Checkpoints, State, Unlogged};
pub use config::{AdamConfig, Config, Metric, TrainConfig};
pub use error::{Error, Result};
pub use log::{Event, Log};
pub use open::Start;
pub use optimizer::Optimizer;
pub use profile::Profile;
pub use run::Run;
pub use schedule::{ScheduleConfig, ScheduleKind};
pub use stop::Stop;
pub use validate::{Sample, Translated, Validator};

/// How a training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    let ending = loop {
        if let Some(ending) = run.ending(stop) {
            break ending;
        }
        let batches = run.next_update();
        let tokens: usize = batches.iter().map(|batch| batch.target.ids.len()).sum();
        for (micro, batch) in batches.iter().enumerate() {
            let loss = run.forward(batch, micro)?;
            loss.backward(1.0 / tokens as f64, run.model.params().iter())?;
        }
        let norm = run.update()?;
        run.report(tokens, norm)?;
        let improved = run.validation_due() && run.validate()?;
        if improved || run.save_due() {
            run.save()?;
        }
    };
    run.finish()?;
    Ok(ending)
}
