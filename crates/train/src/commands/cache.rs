use std::path::PathBuf;
use std::process::ExitCode;

use attend_train::{CacheListing, remove_entries};

use super::outcome::print_result;

/// List the token ids and tokenizers that trainings have left in a cache, or remove them
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The cache's folder
    #[arg(default_value = "runs/attend-cache")]
    folder: PathBuf,
    /// Remove this entry; can be given more than once
    #[arg(long, value_name = "KEY")]
    remove: Vec<String>,
    /// Remove all entries
    #[arg(long, conflicts_with = "remove")]
    clear: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.clear || !args.remove.is_empty() {
        let removed = remove_entries(&args.folder, &args.remove, args.clear)?;
        tracing::info!("removed {removed} entries");
        return Ok(ExitCode::SUCCESS);
    }
    print_result(&CacheListing::read(&args.folder)?, true)
}
