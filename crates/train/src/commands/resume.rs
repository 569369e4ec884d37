use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use attend_ops::on_pool;
use attend_train::{ResumeOptions, Run, Stop};

use super::compute_args::TrainComputeArgs;
use super::training::train_and_test;

/// Continue a run from its last checkpoint; the result is the same as without the interruption
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The run's folder
    run: PathBuf,
    /// Override a value of the config, such as train.steps=500; can be given more than once
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Continue although this key of the config has changed, which changes the training; can be
    /// given more than once
    #[arg(long, value_name = "KEY")]
    allow: Vec<String>,
    /// At the end, print how long each part of a training step took
    #[arg(long)]
    profile: bool,
    #[command(flatten)]
    compute: TrainComputeArgs,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let stop = Stop::listen().context("cannot listen for signals")?;
    let compute = args.compute.start()?;
    let options = ResumeOptions {
        overrides: args.overrides,
        allow: args.allow,
    };
    let comm = compute.comm.clone();
    on_pool(|| {
        let run = Run::resume(&args.run, &options, compute)?;
        train_and_test(run, &*comm, &stop, args.profile)
    })
}
