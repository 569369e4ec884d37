use std::path::PathBuf;
use std::process::ExitCode;

use attend_train::list_runs;

use super::outcome::print_result;

/// List the runs in a folder: state, step, best validation, size and age
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder that holds the runs, or one run
    #[arg(default_value = "runs")]
    folder: PathBuf,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    print_result(&list_runs(&args.folder)?, true)
}
