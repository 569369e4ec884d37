use std::path::PathBuf;

use attend_data::{Corpus, FilePair};
use attend_infer::cli::ComputeArgs;
use attend_infer::{Bundle, Result, Translator, metrics};

use super::DecodeArgs;
use super::output::{Output, check_apart};

/// Translate a test set and print BLEU and chrF, as sacreBLEU would.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  infer evaluate runs/quickstart --src data/quickstart/test.en --ref data/quickstart/test.de
  infer evaluate runs/quickstart --src test.en --ref test.de --json -o test.hyp.de")]
pub(crate) struct Args {
    /// A run folder (its best checkpoint), a checkpoint or a bundle
    run: PathBuf,

    /// What to translate, UTF-8 or gzip of it, one sentence per line
    #[arg(long = "src", value_name = "FILE")]
    source: PathBuf,

    /// Its translations by people, line by line
    #[arg(long = "ref", value_name = "FILE")]
    references: PathBuf,

    /// Write the model's translations to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    decode: DecodeArgs,

    #[command(flatten)]
    compute: ComputeArgs,
}

pub(crate) fn run(args: Args) -> Result<()> {
    let output = args.output.as_deref();
    check_apart(output, [&args.source, &args.references])?;
    let files = FilePair {
        source: args.source,
        target: args.references,
    };
    let Corpus { source, target } = Corpus::read(&files.into(), "", "")?; // both are named in full
    let (device, path) = args.compute.start()?;
    let bundle = Bundle::open(&args.run, &device)?;
    let decode = args.decode.apply(bundle.decode.clone())?;
    let translator = Translator::new(&*bundle.model, &bundle.tokenizers, &decode, path);
    let mut file = match output {
        Some(path) => Some(Output::open(Some(path))?),
        None => None,
    };

    let evaluation = attend_infer::evaluate(&translator, &source, &target)?;
    if let Some(file) = &mut file {
        for hypothesis in &evaluation.hypotheses {
            file.line(hypothesis)?;
        }
        file.flush()?;
    }
    let scores = [evaluation.bleu, evaluation.chrf];
    let mut stdout = Output::open(None)?;
    stdout.line(match args.json {
        true => metrics::json(&scores),
        false => metrics::text(&scores),
    })?;
    stdout.flush()
}
