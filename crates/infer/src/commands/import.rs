use std::path::PathBuf;

use attend_cli::Bars;
use attend_infer::{export, hub};

use super::output::Output;

/// Write a model of another program as a bundle: MarianMT from a folder or the hub, Pegasus, CTranslate2.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  infer import hf://Helsinki-NLP/opus-mt-en-de -o models/en-de
  infer import downloads/opus-mt-en-de -o models/en-de

`infer translate` takes the same sources without importing them first, and `train.init` in a config
starts training from one.")]
pub(crate) struct Args {
    /// The model: hf://OWNER/NAME[@REVISION], or a folder
    source: PathBuf,

    /// The folder to write, which must not exist yet
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let source = hub::local(&args.source, &Bars)?;
    let bundle = export::import(&source, &args.output)?;
    let weights = bundle.model.weights().count();
    let tokens = bundle.config.vocabularies.target;
    let mut stdout = Output::open(None)?;
    stdout.line(format_args!(
        "{}: {weights} parameters, {tokens} target tokens",
        args.output.display()
    ))?;
    Ok(stdout.flush()?)
}
