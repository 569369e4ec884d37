use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use attend_cli::ComputeArgs;
use attend_ops::on_pool;
use attend_train::write_report;

/// Write one page about a run: what was trained on what, curves, translations over time, attention, scores, and how to
/// use the model. `train run` writes it too, at the end.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The run's folder
    run: PathBuf,

    /// Output file, .html [default: RUN/report.html]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    compute: ComputeArgs,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (device, kernels) = args.compute.start()?;
    let output = args.output.as_deref();
    let written = on_pool(|| write_report(&args.run, output, &device, kernels))?;
    writeln!(io::stdout(), "{}", written.display())?;
    Ok(ExitCode::SUCCESS)
}
