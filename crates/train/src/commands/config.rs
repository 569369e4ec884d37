use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use attend_train::Config;

/// Print a config with every default filled in
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The config, a TOML file
    #[arg(required_unless_present = "schema")]
    config: Option<PathBuf>,
    /// Override a value of the config, such as train.steps=500; can be given more than once
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Print the JSON schema of configs instead, for editors
    #[arg(long)]
    schema: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout();
    if args.schema {
        writeln!(out, "{}", Config::schema())?;
    } else {
        let path = args.config.unwrap_or_default();
        write!(out, "{}", Config::read(&path, &args.overrides)?.to_toml())?;
    }
    Ok(ExitCode::SUCCESS)
}
