use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use attend_ops::on_pool;
use attend_train::{Compute, Config, Result, Run, Start, Stop};

use super::compute_args::TrainComputeArgs;
use super::config_args::ConfigArgs;
use super::training::train_and_test;

/// Options of commands that make training data and train on it.
#[derive(clap::Args)]
pub(super) struct SyntheticArgs {
    /// The folder for the translations [default: beside the run's folder, with its name]
    #[arg(long, value_name = "FOLDER")]
    corpus: Option<PathBuf>,
    /// Make the translations, print the config to train with them, and stop
    #[arg(long)]
    no_training: bool,
    #[command(flatten)]
    compute: TrainComputeArgs,
}

impl SyntheticArgs {
    /// `make` writes the data to a folder, and returns the config with it.
    pub(super) fn run(
        &self,
        source: &ConfigArgs,
        what: &str,
        make: impl FnOnce(&Config, &Path, &Compute) -> Result<Config> + Send,
    ) -> anyhow::Result<ExitCode> {
        let stop = Stop::listen().context("cannot listen for signals")?;
        let compute = self.compute.start()?;
        let comm = compute.comm.clone();
        let config = source.read()?;
        // Before the translating, which takes long.
        if !self.no_training && comm.is_first() {
            Run::check_new(&config, Start::New)?;
        }
        let folder = self.corpus.clone().unwrap_or_else(|| {
            let name = config.out.file_name().unwrap_or_default();
            let name = format!("{}.{what}", name.to_string_lossy());
            config.out.with_file_name(name)
        });
        on_pool(|| {
            let config = make(&config, &folder, &compute)?;
            if self.no_training {
                if comm.is_first() {
                    write!(io::stdout(), "{}", config.to_toml())?;
                }
                comm.finish()?;
                return Ok(ExitCode::SUCCESS);
            }
            let run = Run::start(config, Start::New, compute)?;
            train_and_test(run, &*comm, &stop, false)
        })
    }
}
