//! `infer`: use a trained model.

mod commands;

use std::process::ExitCode;

use attend_infer::{Result, cli};
use clap::{Parser, Subcommand};

use commands::{attend, evaluate, translate};

#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Use a trained model: translate text, measure how well it translates, or draw what it attends to.
///
/// RUN is the folder that `train` wrote (its best checkpoint is taken), one of the checkpoints in
/// it, or a bundle.
#[derive(Parser)]
#[command(name = "infer", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Translate(translate::Args),
    Evaluate(evaluate::Args),
    Attend(attend::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    cli::start_log("warn");
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads our output has had enough of it: `infer translate … | head`.
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => cli::report(&error, error.hint()),
    }
}

fn run(cli: Cli) -> Result<()> {
    match cli.command {
        Command::Translate(args) => translate::run(args),
        Command::Evaluate(args) => evaluate::run(args),
        Command::Attend(args) => attend::run(args),
    }
}
