use std::path::PathBuf;
use std::process::ExitCode;

use attend_train::{Curves, Horizontal, Picture};

/// Draw the curves of runs: losses, scores, learning rate, gradient norm and speed.
///
/// Runs are told apart by colour. A ring is the best validation. Where the numbers of a curve are noisy, the line is
/// smooth, and the numbers are behind it in a lighter colour. A run may be training right now.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  train plot runs/quickstart -o curves.svg
  train plot runs/base runs/big --x hours -o compared.html
  train plot runs/quickstart -o - > curves.svg")]
pub(crate) struct Args {
    /// The folders of the runs
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,

    /// Output file, .svg, .png or .html; `-` writes SVG to standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// What runs along the horizontal axis
    #[arg(long, value_enum, default_value_t = Axis::Steps, value_name = "AXIS")]
    x: Axis,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Axis {
    /// Updates
    Steps,
    /// Hours of training, without validating and saving
    Hours,
    /// Target tokens trained on
    Tokens,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let picture = Picture::to(&args.output, &args.runs)?;
    let horizontal = match args.x {
        Axis::Steps => Horizontal::Steps,
        Axis::Hours => Horizontal::Hours,
        Axis::Tokens => Horizontal::Tokens,
    };
    let curves = Curves::read(&args.runs, horizontal)?;
    picture.write(&curves)?;
    Ok(ExitCode::SUCCESS)
}
