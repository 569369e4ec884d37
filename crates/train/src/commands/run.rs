use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use attend_ops::on_pool;
use attend_train::{Config, Error, Run, Start, Stop};

use super::compute_args::TrainComputeArgs;
use super::config_args::ConfigArgs;
use super::training::train_and_test;

/// Train a model: `train run configs/quickstart.toml --set train.steps=500`
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    source: ConfigArgs,
    /// Replace the run that the output folder holds
    #[arg(long)]
    overwrite: bool,
    /// At the end, print how long each part of a training step took
    #[arg(long)]
    profile: bool,
    #[command(flatten)]
    compute: TrainComputeArgs,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let stop = Stop::listen().context("cannot listen for signals")?;
    let compute = args.compute.start()?;
    let config = args.source.read()?;
    check_not_overwritten(&args.source.config, &config)?;
    let start = if args.overwrite {
        Start::Overwrite
    } else {
        Start::New
    };
    let comm = compute.comm.clone();
    on_pool(|| {
        let run = Run::start(config, start, compute)?;
        train_and_test(run, &*comm, &stop, args.profile)
    })
}

/// A run writes its own `config.toml`; it must not be the one that it was started from.
fn check_not_overwritten(path: &Path, config: &Config) -> Result<(), Error> {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let written = real(&config.out.join("config.toml"));
    if written.is_some() && written == real(path) {
        return Err(Error::Config {
            place: path.display().to_string(),
            message: format!("the run in {} would write over it", config.out.display()),
            hint: Some("choose another folder for `out`, or another name for the config".into()),
        });
    }
    Ok(())
}
