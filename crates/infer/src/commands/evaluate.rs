use std::path::PathBuf;

use attend_cli::{ComputeArgs, bar};
use attend_infer::metrics::{self, Bootstrap, MetricChoice, Score, Tally};
use attend_infer::{Error, Result, Translator};
use attend_model::Encode;

use super::metric_args::MetricArgs;
use super::model_args::ModelArgs;
use super::output::{Output, check_apart, check_writable};
use super::test_set::{TextFile, check_lines};
use super::warnings::LengthWarnings;
use super::{ConstraintArgs, DecodeArgs};

/// Translate a test set, or take its translations from a file, and print BLEU, chrF and TER, equal to sacreBLEU's, or exact
/// match.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  infer evaluate runs/quickstart --src data/quickstart/test.en --ref data/quickstart/test.de
  infer evaluate runs/quickstart --src test.en --ref test.de --json -o test.hyp.de
  infer evaluate runs/a --ensemble runs/b --ensemble runs/c --src test.en --ref test.de
  infer evaluate runs/captions --src scenes/test.tsv:picture --ref scenes/test.tsv:en
  infer evaluate --hyp test.hyp.de --ref test.de --ref test2.de --metrics bleu,chrf++,ter --confidence")]
pub(crate) struct Args {
    /// Run folder (its best checkpoint is used), checkpoint or bundle
    #[arg(required_unless_present = "hypotheses")]
    run: Option<PathBuf>,

    /// Score the translations in this file instead of a model's; `-` is standard input
    #[arg(
        long = "hyp",
        value_name = "FILE",
        conflicts_with_all = [
            "run", "output", "ModelArgs", "LengthArgs", "ConstraintArgs",
            // Those of DecodeArgs: clap makes no group of options with a group among them.
            "beam", "greedy", "early_stopping", "coverage_penalty", "max_length", "max_length_ratio",
            "min_length", "min_length_ratio", "no_repeat_ngram", "repetition_penalty", "sample",
            "temperature", "top_k", "top_p", "min_p", "seed", "max_source_length", "batch_tokens"
        ]
    )]
    hypotheses: Option<PathBuf>,

    /// Source sentences, UTF-8 text, one per line, plain or compressed with gzip, zstd or xz; or the paths of
    /// pictures, relative to the file's folder. FILE.tsv:COLUMN is a column of a table
    #[arg(
        long = "src",
        value_name = "FILE",
        required_unless_present = "hypotheses"
    )]
    source: Option<PathBuf>,

    /// Reference translations, on the same lines as the source, also FILE.tsv:COLUMN; may be given several times
    #[arg(long = "ref", value_name = "FILE", required = true)]
    references: Vec<PathBuf>,

    /// Write the model's translations to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print the scores as JSON
    #[arg(long)]
    json: bool,

    /// Print these metrics, separated by commas: bleu, chrf, chrf++, ter, exact
    #[arg(
        long,
        value_name = "NAMES",
        value_enum,
        value_delimiter = ',',
        default_value = "bleu,chrf",
        hide_possible_values = true
    )]
    metrics: Vec<MetricChoice>,

    /// Print the mean score of resampled test sets and half the width of the interval that 95 % of them are in
    #[arg(long)]
    confidence: bool,

    /// How many test sets are resampled
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1000,
        requires = "confidence",
        value_parser = clap::value_parser!(u32).range(2..=1_000_000)
    )]
    confidence_n: u32,

    /// Resample other test sets; the same number draws the same, as with SACREBLEU_SEED
    #[arg(long, value_name = "N", default_value_t = metrics::SEED, requires = "confidence")]
    confidence_seed: u64,

    #[command(flatten)]
    metric_args: MetricArgs,

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
    let inputs = args.source.iter().chain(&args.references);
    check_apart(args.output.as_deref(), inputs)?;
    let references = TextFile::read_all(&args.references)?;
    let hypotheses = match &args.hypotheses {
        Some(path) => {
            let file = TextFile::read(path)?;
            let source = args.source.as_deref().map(TextFile::read).transpose()?;
            check_lines(std::iter::once(&file).chain(&references).chain(&source))?;
            args.compute.start()?;
            file.lines
        }
        None => args.translate(&references)?,
    };
    let references: Vec<_> = references.into_iter().map(|file| file.lines).collect();
    let scores = args.scores(&hypotheses, &references)?;
    let mut stdout = Output::open(None)?;
    stdout.line(if args.json {
        metrics::json(&scores)
    } else {
        metrics::text(&scores)
    })?;
    Ok(stdout.flush()?)
}

impl Args {
    /// The model's translations, which are written to a file too if that is asked for.
    fn translate(&self, references: &[TextFile]) -> anyhow::Result<Vec<String>> {
        let (Some(run), Some(source)) = (&self.run, &self.source) else {
            let message = "there is nothing to evaluate".into();
            let hint = "give RUN and --src, or --hyp".into();
            return Err(Error::Usage { message, hint }.into());
        };
        let source = TextFile::read(source)?;
        check_lines(std::iter::once(&source).chain(references))?;
        let (device, kernels) = self.compute.start()?;
        let models = self.models.open(run, &device, kernels)?;
        let decode = self.decode.apply(models.decode.clone())?;
        let bar = bar(Some(source.lines.len() as u64));
        let advance = |lines: usize| bar.advance(lines as u64);
        let translator = Translator::new(&models.ensemble, &models.tokenizers, &decode, kernels);
        let mut translator = translator.observed_by(&advance);
        let forbidden = self.constraints.forbidden()?;
        if !forbidden.is_empty() {
            translator = translator.forbidding(&forbidden)?;
        }
        self.output.as_deref().map_or(Ok(()), check_writable)?;

        let hypotheses = source.translate(&translator, models.ensemble.source())?;
        drop(bar);
        let mut warnings = LengthWarnings::new(models.max_length, decode.max_source_length);
        for (line, tokens) in hypotheses.source_tokens.iter().enumerate() {
            warnings.check(line + 1, *tokens);
        }
        warnings.finish();
        if let Some(path) = self.output.as_deref() {
            let mut file = Output::open(Some(path))?;
            for hypothesis in &hypotheses.lines {
                file.line(hypothesis)?;
            }
            file.flush()?;
        }
        Ok(hypotheses.lines)
    }

    fn scores(&self, hypotheses: &[String], references: &[Vec<String>]) -> Result<Vec<Score>> {
        let bootstrap = Bootstrap {
            samples: self.confidence_n as usize,
            seed: self.confidence_seed,
        };
        let metrics = self.metric_args.metrics(&self.metrics);
        let mut scores = Vec::new();
        for metric in &metrics {
            let tally = Tally::new(&**metric, hypotheses, references)?;
            let mut score = tally.score();
            if self.confidence {
                let interval = bootstrap.samples(&[&tally])[0].exact_interval();
                score = score.with_confidence(bootstrap, interval);
            }
            scores.push(score);
        }
        Ok(scores)
    }
}
