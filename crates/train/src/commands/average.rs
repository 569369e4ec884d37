use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use attend_train::average;

/// Average the parameters of a run's last checkpoints into a bundle that `infer` can use
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The run's folder
    run: PathBuf,
    /// How many of the last checkpoints
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    last: u64,
    /// Where to write the bundle [default: RUN/averaged]
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let averaged = average(&args.run, args.last as usize, args.output)?;
    tracing::info!("averaged the checkpoints of steps {:?}", averaged.steps);
    writeln!(io::stdout(), "{}", averaged.folder.display())?;
    Ok(ExitCode::SUCCESS)
}
