use std::path::PathBuf;
use std::process::ExitCode;

use attend_train::compare;

use super::outcome::print_result;

/// Show how two runs differ
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder of one run
    a: PathBuf,
    /// The folder of the other
    b: PathBuf,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let comparison = compare(&args.a, &args.b)?;
    print_result(&comparison, comparison.is_same())
}
