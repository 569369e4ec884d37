use std::path::PathBuf;
use std::process::ExitCode;

use attend_train::{Monolingual, Teacher, back_translate};

use super::config_args::ConfigArgs;
use super::synthetic_args::SyntheticArgs;

/// Train with text in the target language too, of which a model of the other direction makes the sources
#[derive(clap::Args)]
#[command(after_help = "\
Example: train backtranslate runs/de-en en-de.toml --text news.de.gz --tag '>>bt<<'

The translations are kept beside the run's folder, in parts of 2,000 lines: what is there is not translated again, so an
interrupted command goes on where it was when it is given again. The pairs become one more corpus of the training data.
`train resume RUN` continues the training.")]
pub(crate) struct Args {
    /// A model from the target language to the source language: a run, a bundle, or hf://OWNER/NAME
    reverse: PathBuf,
    #[command(flatten)]
    config: ConfigArgs,
    /// Text in the target language, a sentence on each line; may be given several times
    #[arg(long, value_name = "FILE", required = true)]
    text: Vec<PathBuf>,
    /// What is put before the sources that are made, so that the model can tell them from others; \"\" for nothing
    #[arg(long, value_name = "TAG", default_value = ">>bt<<")]
    tag: String,
    /// The share of these pairs, if all other corpora have a `weight`
    #[arg(long, value_name = "WEIGHT")]
    weight: Option<f64>,
    /// Draw the sources from the model's probabilities instead of searching for the likeliest
    #[arg(long)]
    sample: bool,
    #[command(flatten)]
    synthetic: SyntheticArgs,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let text = Monolingual {
        files: args.text,
        tag: Some(args.tag).filter(|tag| !tag.is_empty()),
        weight: args.weight,
    };
    args.synthetic
        .run(&args.config, "backtranslated", |config, folder, compute| {
            let reverse = Teacher::open(&args.reverse, compute, |decode| {
                decode.sampling |= args.sample;
            })?;
            back_translate(config, &reverse, &text, folder, &*compute.comm)
        })
}
