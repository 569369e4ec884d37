use std::path::PathBuf;

use attend_cli::{Bars, ComputeArgs, bar};
use attend_data::{Corpus, FilePair};
use attend_infer::{Translator, metrics};

use super::model_args::ModelArgs;
use super::output::{Output, check_apart};
use super::warnings::LengthWarnings;
use super::{ConstraintArgs, DecodeArgs};

/// Translate a test set and print BLEU and chrF2, equal to sacreBLEU's.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  infer evaluate runs/quickstart --src data/quickstart/test.en --ref data/quickstart/test.de
  infer evaluate runs/quickstart --src test.en --ref test.de --json -o test.hyp.de
  infer evaluate runs/a --ensemble runs/b --ensemble runs/c --src test.en --ref test.de")]
pub(crate) struct Args {
    /// Run folder (its best checkpoint is used), checkpoint or bundle
    run: PathBuf,

    /// Source sentences, UTF-8 text, one per line, plain or compressed with gzip, zstd or xz
    #[arg(long = "src", value_name = "FILE")]
    source: PathBuf,

    /// Reference translations, on the same lines as the source
    #[arg(long = "ref", value_name = "FILE")]
    references: PathBuf,

    /// Write the model's translations to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print the scores as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    models: ModelArgs,

    #[command(flatten)]
    decode: DecodeArgs,

    #[command(flatten)]
    constraints: ConstraintArgs,

    #[command(flatten)]
    compute: ComputeArgs,
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let output = args.output.as_deref();
    check_apart(output, [&args.source, &args.references])?;
    let files = FilePair {
        source: args.source,
        target: args.references,
    };
    let Corpus { source, target } = Corpus::read(&files.into(), "", "", &Bars)?; // both paths are complete
    let (device, kernels) = args.compute.start()?;
    let models = args.models.open(&args.run, &device, kernels)?;
    let decode = args.decode.apply(models.decode.clone())?;
    let bar = bar(Some(source.len() as u64));
    let advance = |lines: usize| bar.advance(lines as u64);
    let translator = Translator::new(&models.ensemble, &models.tokenizers, &decode, kernels);
    let mut translator = translator.observed_by(&advance);
    let forbidden = args.constraints.forbidden()?;
    if !forbidden.is_empty() {
        translator = translator.forbidding(&forbidden)?;
    }
    let mut file = match output {
        Some(path) => Some(Output::open(Some(path))?),
        None => None,
    };

    let evaluation = attend_infer::evaluate(&translator, &source, &target)?;
    drop(bar);
    let mut warnings = LengthWarnings::new(models.max_length, decode.max_source_length);
    for (line, tokens) in evaluation.source_tokens.iter().enumerate() {
        warnings.check(line + 1, *tokens);
    }
    warnings.finish();
    if let Some(file) = &mut file {
        for hypothesis in &evaluation.hypotheses {
            file.line(hypothesis)?;
        }
        file.flush()?;
    }
    let scores = [evaluation.bleu, evaluation.chrf];
    let mut stdout = Output::open(None)?;
    stdout.line(if args.json {
        metrics::json(&scores)
    } else {
        metrics::text(&scores)
    })?;
    Ok(stdout.flush()?)
}
