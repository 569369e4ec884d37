use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use attend_cli::ComputeArgs;
use attend_comm::Solo;
use attend_ops::on_pool;
use attend_train::{Compute, Selection, average};

/// Average the parameters of a run's checkpoints into a bundle that `infer` can use
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  train average runs/my --last 5
  train average runs/my --best 5 --choose

A run keeps the last `train.keep` checkpoints and the best. With --choose, N checkpoints and all smaller numbers of them
are averaged and validated by train.metric, and the best average is written.")]
pub(crate) struct Args {
    /// The run's folder
    run: PathBuf,
    /// Average the last N checkpoints
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..),
        required_unless_present = "best",
        conflicts_with = "best"
    )]
    last: Option<u64>,
    /// Average the N checkpoints with the best validations
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    best: Option<u64>,
    /// Choose how many of them on the validation data
    #[arg(long)]
    choose: bool,
    /// Where to write the bundle [default: RUN/averaged]
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    #[command(flatten)]
    compute: ComputeArgs,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (device, kernels) = args.compute.start()?;
    let compute = Compute {
        device,
        kernels,
        memory: None,
        comm: Arc::new(Solo),
    };
    let selection = match args.best {
        Some(count) => Selection::Best(count as usize),
        None => Selection::Last(args.last.unwrap_or(1) as usize),
    };
    let choose = args.choose.then_some(&compute);
    let averaged = on_pool(|| average(&args.run, selection, choose, args.output))?;
    for (count, validation) in averaged.trials {
        let s = if count == 1 { "" } else { "s" };
        tracing::info!("{count} checkpoint{s}: {validation}");
    }
    tracing::info!("averaged the checkpoints of steps {:?}", averaged.steps);
    writeln!(io::stdout(), "{}", averaged.folder.display())?;
    Ok(ExitCode::SUCCESS)
}
