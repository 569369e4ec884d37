//! `train`: from a config to a model that translates.

mod commands;

use std::io;
use std::process::ExitCode;

use attend_cli::{CompletionsArgs, ManArgs, VERSION};
use attend_train::Error;
use clap::{CommandFactory, Parser, Subcommand};
use commands::{
    average, backtranslate, cache, check, config, diff, distill, doctor, ls, plot, prepare, report,
    resume, run, verify_resume,
};

/// Trains translation models from a config.
#[derive(Parser)]
#[command(name = "train", version = &**VERSION)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Args),
    Resume(resume::Args),
    Average(average::Args),
    Distill(distill::Args),
    Backtranslate(backtranslate::Args),
    VerifyResume(verify_resume::Args),
    Check(check::Args),
    Prepare(prepare::Args),
    Cache(cache::Args),
    Ls(ls::Args),
    Doctor(doctor::Args),
    Diff(diff::Args),
    Plot(plot::Args),
    Report(report::Args),
    Config(config::Args),
    /// Print the completions for a shell, such as `train completions bash > /etc/bash_completion.d/train`
    Completions(CompletionsArgs),
    /// Print the manual page, such as `train man | man -l -`
    Man(ManArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    attend_cli::start_log("info");
    match perform(cli.command) {
        Ok(code) => code,
        Err(error) => match error.downcast_ref::<io::Error>() {
            // The reader of our output has gone, as `head` does: not our failure.
            Some(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            _ => {
                let hint = error.downcast_ref::<Error>().and_then(Error::hint);
                let hint = hint.or_else(|| error.downcast_ref::<attend_comm::Error>()?.hint());
                let of_cli = error.downcast_ref::<attend_cli::Error>();
                let hint = hint.or_else(|| Some(of_cli?.hint.clone()));
                attend_cli::report(error.as_ref(), hint)
            }
        },
    }
}

fn perform(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(args) => run::run(args),
        Command::Resume(args) => resume::run(args),
        Command::Average(args) => average::run(args),
        Command::Distill(args) => distill::run(args),
        Command::Backtranslate(args) => backtranslate::run(args),
        Command::VerifyResume(args) => verify_resume::run(args),
        Command::Check(args) => check::run(args),
        Command::Prepare(args) => prepare::run(args),
        Command::Cache(args) => cache::run(args),
        Command::Ls(args) => ls::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Diff(args) => diff::run(args),
        Command::Plot(args) => plot::run(args),
        Command::Report(args) => report::run(args),
        Command::Config(args) => config::run(args),
        Command::Completions(args) => {
            args.run(Cli::command())?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Man(args) => {
            args.run(Cli::command())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
