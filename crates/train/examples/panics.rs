//! A training of which one rank panics. `scripts/torture/ranks.py` runs it.
//!
//! `mpirun -n 3 panics RANK STEP CONFIG.toml|RUN [KEY=VALUE…]` trains or resumes. The rank panics in this step.

use std::path::PathBuf;

use anyhow::Result;
use attend_cli::ComputeArgs;
use attend_ops::on_pool;
use attend_train::{Compute, Config, ResumeOptions, Run, Start, Stop};
use clap::Parser;

#[derive(Parser)]
struct Cli {
    rank: usize,
    step: u64,
    /// A config, or the folder of a run
    source: PathBuf,
    overrides: Vec<String>,
    #[command(flatten)]
    compute: ComputeArgs,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    attend_cli::start_log("info");
    let (device, kernels) = cli.compute.start()?;
    let comm = attend_comm::connect(&device)?;
    attend_cli::set_rank(comm.rank());
    let compute = Compute {
        device,
        kernels,
        memory: None,
        comm: comm.clone(),
    };
    on_pool(|| {
        let mut run = match cli.source.is_dir() {
            true => Run::resume(&cli.source, &ResumeOptions::default(), compute)?,
            false => {
                let config = Config::read(&cli.source, &cli.overrides)?;
                Run::start(config, Start::New, compute)?
            }
        };
        // The loop of `train`, which cannot be made to panic.
        let stop = Stop::default();
        run.complete_validation(&stop)?;
        while run.ending(&stop)?.is_none() {
            let mut update = run.next_update()?;
            for micro in 0..update.batches.len() {
                let loss = run.forward(&mut update, micro)?;
                let panics = comm.rank() == cli.rank && run.state.step + 1 >= cli.step;
                assert!(!panics, "on purpose");
                loss.backward(1.0 / update.tokens as f64, run.model.weights().params())?;
            }
            run.update(&mut update)?;
            run.report(&update)?;
            let improved = run.validation_due() && run.validate(&stop)?;
            if improved || run.save_due() {
                run.save_or_warn()?;
            }
        }
        Ok(comm.finish()?)
    })
}
