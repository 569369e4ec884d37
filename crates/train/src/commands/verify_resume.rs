use std::process::ExitCode;

use anyhow::Context;
use attend_cli::ComputeArgs;
use attend_train::{Error, Experiment, Stop};

use super::config_args::ConfigArgs;
use super::outcome::print_result;

/// Train a config for a few steps, once without and once with kills, and compare every bit
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    source: ConfigArgs,
    /// How many steps
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(2..))]
    steps: u64,
    /// How many kills
    #[arg(long, value_name = "K", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    stops: u64,
    #[command(flatten)]
    compute: ComputeArgs,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let stop = Stop::listen().context("cannot listen for signals")?;
    stop.defer(); // the trainings and their folder are removed first
    let scratch = tempfile::tempdir().context("no place for temporary runs")?;
    let experiment = Experiment {
        config: args.source.config,
        overrides: args.source.overrides,
        steps: args.steps,
        stops: args.stops,
        program: std::env::current_exe().context("cannot find this program")?,
        compute: args.compute.to_args(),
        scratch: scratch.path().to_path_buf(),
        stop: stop.clone(),
    };
    match (experiment.perform(), stop.status()) {
        (Err(Error::Interrupted), Some(status)) => Ok(ExitCode::from(status)),
        (verification, _) => {
            let verification = verification?;
            print_result(&verification, verification.is_exact())
        }
    }
}
