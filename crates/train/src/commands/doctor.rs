use std::path::PathBuf;
use std::process::ExitCode;

use attend_train::diagnose;

use super::outcome::print_result;

/// Check a run for damage
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The run's folder
    run: PathBuf,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let diagnosis = diagnose(&args.run)?;
    print_result(&diagnosis, diagnosis.is_intact())
}
