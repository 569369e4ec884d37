//! `infer`: translates with a trained model, scores and aligns translations, draws attention, and exchanges the model
//! with other programs.

mod commands;

use std::process::ExitCode;

use attend_cli::{CompletionsArgs, ManArgs, VERSION};
use attend_infer::Error;
use clap::{CommandFactory, Parser, Subcommand};

use commands::{
    alignments, attend, compare, evaluate, export, import, push, quantize, score, serve, translate,
    tune,
};

/// Translate with a trained model, score its translations, draw its attention, or exchange it with other
/// programs.
///
/// RUN is the folder that `train` wrote (its best checkpoint is used), one of its checkpoints, a bundle, the
/// folder of a MarianMT model, or one on the hub: hf://OWNER/NAME[@REVISION].
#[derive(Parser)]
#[command(name = "infer", version = &**VERSION)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Translate(translate::Args),
    Evaluate(evaluate::Args),
    Tune(tune::Args),
    Compare(compare::Args),
    Score(score::Args),
    Alignments(alignments::Args),
    Attend(attend::Args),
    Import(import::Args),
    Export(export::Args),
    Quantize(quantize::Args),
    Push(push::Args),
    Serve(Box<serve::Args>),
    /// Print the completions for a shell, such as `infer completions bash > /etc/bash_completion.d/infer`
    Completions(CompletionsArgs),
    /// Print the manual page, such as `infer man | man -l -`
    Man(ManArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    attend_cli::start_log(match cli.command {
        Command::Serve(_) => "info", // each request
        _ => "warn",
    });
    let Err(error) = run(cli) else {
        return ExitCode::SUCCESS;
    };
    let ours = error.downcast_ref::<Error>();
    // The reader closed the output pipe, as in `infer translate … | head`.
    if ours.is_some_and(Error::is_broken_pipe) {
        return ExitCode::SUCCESS;
    }
    attend_cli::report(error.as_ref(), hint(&error))
}

/// How to fix it, where that is known.
fn hint(error: &anyhow::Error) -> Option<String> {
    let of_cli = error.downcast_ref::<attend_cli::Error>();
    let of_comm = error.downcast_ref::<attend_comm::Error>();
    let of_data = error.downcast_ref::<attend_data::Error>();
    let ours = error.downcast_ref::<Error>();
    of_cli
        .map(|error| error.hint.clone())
        .or_else(|| of_comm?.hint())
        .or_else(|| of_data?.hint())
        .or_else(|| ours?.hint())
}

fn run(cli: Cli) -> anyhow::Result<()> {
    match cli.command {
        Command::Translate(args) => translate::run(args),
        Command::Evaluate(args) => evaluate::run(args),
        Command::Tune(args) => tune::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Score(args) => score::run(args),
        Command::Alignments(args) => alignments::run(args),
        Command::Attend(args) => attend::run(args),
        Command::Import(args) => import::run(args),
        Command::Export(args) => export::run(args),
        Command::Quantize(args) => quantize::run(args),
        Command::Push(args) => push::run(args),
        Command::Serve(args) => serve::run(*args),
        Command::Completions(args) => Ok(args.run(Cli::command())?),
        Command::Man(args) => Ok(args.run(Cli::command())?),
    }
}
