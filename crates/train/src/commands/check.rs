use std::process::ExitCode;
use std::sync::Arc;

use attend_comm::Solo;
use attend_ops::on_pool;
use attend_train::check;

use super::compute_args::TrainComputeArgs;
use super::config_args::ConfigArgs;
use super::outcome::print_result;

/// Read everything that a config names and report on it: pairs, dropped pairs, bad lines, lengths, overlap,
/// parameters, memory and speed. Trains nothing
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    source: ConfigArgs,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// For each reason, show this many of the pairs that are dropped, with file and line
    #[arg(long, value_name = "N", default_value_t = 0)]
    show_dropped: usize,
    #[command(flatten)]
    compute: TrainComputeArgs,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut compute = args.compute.start()?;
    let comm = std::mem::replace(&mut compute.comm, Arc::new(Solo));
    let mut code = ExitCode::SUCCESS;
    if comm.is_first() {
        let config = args.source.read()?;
        let report = on_pool(|| check(&config, args.show_dropped, compute))?;
        let could_start = report.could_start();
        code = match args.json {
            true => print_result(&serde_json::to_string_pretty(&report)?, could_start),
            false => print_result(&report, could_start),
        }?;
    }
    comm.barrier()?;
    comm.finish()?;
    Ok(code)
}
