use std::process::ExitCode;

use attend_cli::ComputeArgs;
use attend_ops::on_pool;
use attend_train::prepare;

use super::config_args::ConfigArgs;
use super::outcome::print_result;

/// Make the tokenizer and the token ids of a config, and stop. Training then starts from them
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    source: ConfigArgs,
    #[command(flatten)]
    compute: ComputeArgs,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let config = args.source.read()?;
    args.compute.start()?;
    let prepared = on_pool(|| prepare(&config))?;
    print_result(&prepared, true)
}
