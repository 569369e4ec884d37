//! `train`: from a config to a model that translates.

mod commands;

use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use attend_cli::{CompletionsArgs, ComputeArgs, ManArgs, VERSION, release_memory};
use attend_infer::metrics;
use attend_ops::on_pool;
use attend_train::{
    CacheListing, Compute, Config, Ending, Error, Experiment, Profile, ResumeOptions, Run, Start,
    Stop, Translated, average, check, compare, diagnose, list_runs, machine_memory, prepare,
    remove_entries, train,
};
use clap::{Args, CommandFactory, Parser, Subcommand};

/// Trains translation models from a config.
#[derive(Parser)]
#[command(name = "train", version = &**VERSION)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train a model: `train run configs/quickstart.toml --set train.steps=500`
    Run {
        #[command(flatten)]
        source: ConfigArgs,
        /// Replace the run that the output folder holds
        #[arg(long)]
        overwrite: bool,
        /// At the end, print how long each part of a training step took
        #[arg(long)]
        profile: bool,
        #[command(flatten)]
        compute: TrainComputeArgs,
    },
    /// Continue a run from its last checkpoint; the result is the same as without the interruption
    Resume {
        /// The run's folder
        run: PathBuf,
        /// Override a value of the config, such as train.steps=500; can be given more than once
        #[arg(long = "set", value_name = "KEY=VALUE")]
        overrides: Vec<String>,
        /// Continue although this key of the config has changed, which changes the training; can be
        /// given more than once
        #[arg(long, value_name = "KEY")]
        allow: Vec<String>,
        /// At the end, print how long each part of a training step took
        #[arg(long)]
        profile: bool,
        #[command(flatten)]
        compute: TrainComputeArgs,
    },
    /// Average the parameters of a run's last checkpoints into a bundle that `infer` can use
    Average {
        /// The run's folder
        run: PathBuf,
        /// How many of the last checkpoints
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        last: u64,
        /// Where to write the bundle [default: RUN/averaged]
        #[arg(short, long, value_name = "FOLDER")]
        output: Option<PathBuf>,
    },
    /// Train a config for a few steps, once without and once with kills, and compare every bit
    VerifyResume {
        #[command(flatten)]
        source: ConfigArgs,
        /// How many steps
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(2..))]
        steps: u64,
        /// How many kills
        #[arg(long, value_name = "K", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
        stops: u64,
        #[command(flatten)]
        compute: ComputeArgs,
    },
    /// Read everything that a config names and report on it: pairs, dropped pairs, bad lines, lengths, overlap,
    /// parameters, memory and speed. Trains nothing
    Check {
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
    },
    /// Make the tokenizer and the token ids of a config, and stop. Training then starts from them
    Prepare {
        #[command(flatten)]
        source: ConfigArgs,
        #[command(flatten)]
        compute: ComputeArgs,
    },
    /// List the token ids and tokenizers that trainings have left in a cache, or remove them
    Cache {
        /// The cache's folder
        #[arg(default_value = "runs/attend-cache")]
        folder: PathBuf,
        /// Remove this entry; can be given more than once
        #[arg(long, value_name = "KEY")]
        remove: Vec<String>,
        /// Remove all entries
        #[arg(long, conflicts_with = "remove")]
        clear: bool,
    },
    /// List the runs in a folder: state, step, best validation, size and age
    Ls {
        /// The folder that holds the runs, or one run
        #[arg(default_value = "runs")]
        folder: PathBuf,
    },
    /// Check a run for damage
    Doctor {
        /// The run's folder
        run: PathBuf,
    },
    /// Show how two runs differ
    Diff {
        /// The folder of one run
        a: PathBuf,
        /// The folder of the other
        b: PathBuf,
    },
    Plot(commands::plot::Args),
    Report(commands::report::Args),
    /// Print a config with every default filled in
    Config {
        #[command(flatten)]
        source: OptionalConfigArgs,
        /// Print the JSON schema of configs instead, for editors
        #[arg(long)]
        schema: bool,
    },
    /// Print the completions for a shell, such as `train completions bash > /etc/bash_completion.d/train`
    Completions(CompletionsArgs),
    /// Print the manual page, such as `train man | man -l -`
    Man(ManArgs),
}

#[derive(Args)]
struct TrainComputeArgs {
    #[command(flatten)]
    compute: ComputeArgs,
    /// Train even if the training needs more memory than this machine has, by estimate
    #[arg(long, help_heading = "Computing")]
    ignore_memory: bool,
}

#[derive(Args)]
struct ConfigArgs {
    /// The config, a TOML file
    config: PathBuf,
    /// Override a value of the config, such as train.steps=500; can be given more than once
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
}

#[derive(Args)]
struct OptionalConfigArgs {
    /// The config, a TOML file
    #[arg(required_unless_present = "schema")]
    config: Option<PathBuf>,
    /// Override a value of the config, such as train.steps=500; can be given more than once
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    attend_cli::start_log("info");
    match run(cli.command) {
        Ok(code) => code,
        Err(error) => match error.downcast_ref::<io::Error>() {
            // The reader of our output has gone, as `head` does: not our failure.
            Some(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            _ => {
                let hint = error.downcast_ref::<Error>().and_then(Error::hint);
                let of_cli = error.downcast_ref::<attend_cli::Error>();
                let hint = hint.or_else(|| Some(of_cli?.hint.clone()));
                attend_cli::report(error.as_ref(), hint)
            }
        },
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run {
            source,
            overwrite,
            profile,
            compute,
        } => {
            let config = Config::read(&source.config, &source.overrides)?;
            check_not_overwritten(&source.config, &config)?;
            let start = if overwrite {
                Start::Overwrite
            } else {
                Start::New
            };
            let stop = Stop::listen().context("cannot listen for signals")?;
            let compute = compute.start()?;
            on_pool(|| train_and_test(Run::start(config, start, compute)?, &stop, profile))
        }
        Command::Resume {
            run,
            overrides,
            allow,
            profile,
            compute,
        } => {
            let stop = Stop::listen().context("cannot listen for signals")?;
            let compute = compute.start()?;
            let options = ResumeOptions { overrides, allow };
            on_pool(|| train_and_test(Run::resume(&run, &options, compute)?, &stop, profile))
        }
        Command::Average { run, last, output } => {
            let averaged = average(&run, last as usize, output)?;
            tracing::info!("averaged the checkpoints of steps {:?}", averaged.steps);
            writeln!(io::stdout(), "{}", averaged.folder.display())?;
            Ok(ExitCode::SUCCESS)
        }
        Command::VerifyResume {
            source,
            steps,
            stops,
            compute,
        } => {
            let stop = Stop::listen().context("cannot listen for signals")?;
            stop.defer(); // the trainings and their folder are removed first
            let scratch = tempfile::tempdir().context("no place for temporary runs")?;
            let experiment = Experiment {
                config: source.config,
                overrides: source.overrides,
                steps,
                stops,
                program: std::env::current_exe().context("cannot find this program")?,
                compute: compute.to_args(),
                scratch: scratch.path().to_path_buf(),
                stop: stop.clone(),
            };
            match (experiment.perform(), stop.status()) {
                (Err(Error::Interrupted), Some(status)) => Ok(ExitCode::from(status)),
                (verification, _) => {
                    let verification = verification?;
                    print_result(&verification, verification.is_exact())
                }
            }
        }
        Command::Check {
            source,
            json,
            show_dropped,
            compute,
        } => {
            let config = Config::read(&source.config, &source.overrides)?;
            let compute = compute.start()?;
            let report = on_pool(|| check(&config, show_dropped, compute))?;
            let could_start = report.could_start();
            match json {
                true => print_result(&serde_json::to_string_pretty(&report)?, could_start),
                false => print_result(&report, could_start),
            }
        }
        Command::Prepare { source, compute } => {
            let config = Config::read(&source.config, &source.overrides)?;
            compute.start()?;
            let prepared = on_pool(|| prepare(&config))?;
            print_result(&prepared, true)
        }
        Command::Cache {
            folder,
            remove,
            clear,
        } => {
            if clear || !remove.is_empty() {
                let removed = remove_entries(&folder, &remove, clear)?;
                tracing::info!("removed {removed} entries");
                return Ok(ExitCode::SUCCESS);
            }
            print_result(&CacheListing::read(&folder)?, true)
        }
        Command::Ls { folder } => {
            writeln!(io::stdout(), "{}", list_runs(&folder)?)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Doctor { run } => {
            let diagnosis = diagnose(&run)?;
            print_result(&diagnosis, diagnosis.is_intact())
        }
        Command::Diff { a, b } => {
            let comparison = compare(&a, &b)?;
            print_result(&comparison, comparison.is_same())
        }
        Command::Plot(args) => {
            commands::plot::run(args)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Report(args) => {
            commands::report::run(args)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Config { schema: true, .. } => {
            writeln!(io::stdout(), "{}", Config::schema())?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Completions(args) => {
            args.run(Cli::command())?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Man(args) => {
            args.run(Cli::command())?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Config { source, .. } => {
            let path = source.config.unwrap_or_default();
            write!(
                io::stdout(),
                "{}",
                Config::read(&path, &source.overrides)?.to_toml()
            )?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

impl TrainComputeArgs {
    fn start(&self) -> Result<Compute, attend_cli::Error> {
        let (device, kernels) = self.compute.start()?;
        // A GPU has memory of its own, which is not checked.
        let checked = device.is_cpu() && !self.ignore_memory;
        Ok(Compute {
            device,
            kernels,
            memory: checked.then(machine_memory).flatten(),
        })
    }
}

/// Prints a report. The exit status is 0 only if its result is good.
fn print_result(found: &impl Display, good: bool) -> anyhow::Result<ExitCode> {
    writeln!(io::stdout(), "{found}")?;
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// A run writes its own `config.toml`; it must not be the one that it was started from.
fn check_not_overwritten(path: &Path, config: &Config) -> Result<(), Error> {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let written = real(&config.out.join("config.toml"));
    if written.is_some() && written == real(path) {
        return Err(Error::Config {
            place: path.display().to_string(),
            message: format!("the run in {} would write over it", config.out.display()),
            hint: Some("choose another folder for `out`, or another name for the config".into()),
        });
    }
    Ok(())
}

/// Trains to the end, then shows what the model can do.
fn train_and_test(mut run: Run, stop: &Stop, profile: bool) -> anyhow::Result<ExitCode> {
    release_memory();
    let profile = profile.then(|| Profile::start(&run));
    let ending = train(&mut run, stop)?;
    if let Some(profile) = profile {
        profile.report(&run);
    }
    let folder = run.config.out.display().to_string();
    if let Ending::Signal(status) = ending {
        tracing::warn!(
            "stopped at step {}; continue with `train resume {folder}`",
            run.state.step
        );
        return Ok(ExitCode::from(status));
    }
    if ending == Ending::Patience {
        tracing::info!("stopped early: validation no longer improves");
    }
    stop.exit_on_signal();
    if let Some(translated) = run.test()? {
        show(&translated, run.config.train.samples)?;
    }
    if let Err(error) = run.write_report() {
        tracing::warn!("no report of the run: {error}");
    }
    tracing::info!("translate with it: `infer translate {folder}`");
    Ok(ExitCode::SUCCESS)
}

/// Sample translations of the test set, then its scores.
fn show(translated: &Translated, samples: usize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    // Spread over the set, since neighbours in a corpus are often alike.
    let every = (translated.lines.len() / samples.max(1)).max(1);
    for sample in translated.lines.iter().step_by(every).take(samples) {
        writeln!(out, "source       {}", sample.source)?;
        writeln!(out, "reference    {}", sample.reference)?;
        writeln!(out, "translation  {}\n", sample.translation)?;
    }
    let scores = [translated.bleu.clone(), translated.chrf.clone()];
    writeln!(out, "{}", metrics::text(&scores))
}
