use std::path::{Path, PathBuf};

use attend_cli::{Bars, ComputeArgs, bar};
use attend_data::Corpus;
use attend_infer::metrics::{MetricChoice, Tally};
use attend_infer::{
    Bundle, Contents, DecodeConfig, Error, Hypotheses, Result, Translator, Trial, best_trial, hub,
    tune,
};
use attend_model::{Packing, Seq2Seq};

use super::metric_args::MetricArgs;
use super::output::Output;
use super::test_set::{TextFile, check_lines};
use super::validation_set::validation_set;

/// Find the beam size and the length penalty that translate the validation set best, and keep them with the model.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  infer tune runs/quickstart
  infer tune runs/quickstart/averaged --beams 4,5,8 --lowercase
  infer tune models/en-de --src valid.en --ref valid.de --dry-run

Prints every choice with its score, and then the best. That is written to the model's generation_config.json, from which
other commands take their defaults. A training that is resumed goes on with [decode] of its config. Tune on validation
data: settings that were chosen on test data say nothing about other text.")]
pub(crate) struct Args {
    /// Run folder (its best checkpoint is tuned), checkpoint or bundle
    run: PathBuf,

    /// Source sentences, one per line [default: data.valid of the config that the model was trained with]
    #[arg(long = "src", value_name = "FILE", requires = "reference")]
    source: Option<PathBuf>,

    /// Reference translations, on the same lines
    #[arg(long = "ref", value_name = "FILE", requires = "source")]
    reference: Option<PathBuf>,

    /// Beam sizes to try, separated by commas
    #[arg(
        long,
        value_name = "SIZES",
        value_delimiter = ',',
        default_value = "1,2,4,5,6,8",
        value_parser = clap::value_parser!(u16).range(1..=1000)
    )]
    beams: Vec<u16>,

    /// The score to choose by: bleu, chrf, chrf++, ter or exact
    #[arg(
        long,
        value_name = "NAME",
        value_enum,
        default_value = "bleu",
        hide_possible_values = true
    )]
    metric: MetricChoice,

    /// Print the best settings, and write nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    metric_args: MetricArgs,

    #[command(flatten)]
    compute: ComputeArgs,
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let path = hub::local(&args.run, &Bars)?;
    let contents = Contents::open(&path)?;
    let refused = |message: &str, hint: &str| Error::Usage {
        message: format!("{} {message}", args.run.display()),
        hint: hint.into(),
    };
    if contents.decode.sampling {
        let hint =
            "beam search has no effect then: set do_sample to false in its generation_config.json";
        return Err(refused("samples its translations", hint).into());
    }
    if !args.dry_run {
        if hub::is_remote(&args.run) {
            let hint = "give a folder of your own (infer import), or --dry-run";
            return Err(refused("is on the hub", hint).into());
        }
        contents.check_decode_settable()?;
    }
    let data = Data::read(&args, &contents.folder)?;
    let (device, kernels) = args.compute.start()?;
    let bundle = Bundle::open_to_translate(&path, &device, kernels, Packing::Float)?;
    let metric = args.metric.metric(args.metric_args.options());
    let mut beams: Vec<usize> = args.beams.iter().map(|&beam| beam.into()).collect();
    beams.sort_unstable();
    beams.dedup();

    let mut stdout = Output::open(None)?;
    stdout.line(format_args!("beam  length penalty  {}", metric.name()))?;
    let bar = bar(None);
    let trials = tune(&contents.decode, &beams, |decode| {
        let (beam, penalty) = (decode.beam, decode.length_penalty);
        bar.set_message(format!("beam {beam}, length penalty {penalty}"));
        let advance = |lines: usize| bar.advance(lines as u64);
        let translator = Translator::new(&*bundle.model, &bundle.tokenizers, decode, kernels);
        let translator = translator.observed_by(&advance);
        let hypotheses = data.translate(&translator, &*bundle.model)?;
        let tally = Tally::new(&*metric, &hypotheses.lines, &[data.references()])?;
        let score = tally.score().score;
        stdout.line(format_args!("{beam:4}  {penalty:14.2}  {score:.2}"))?;
        stdout.flush()?;
        Ok(match metric.lower_is_better() {
            true => -score,
            false => score,
        })
    })?;
    drop(bar);
    let Some(best) = best_trial(&trials) else {
        return Ok(()); // there is one at least
    };
    let Trial {
        beam,
        length_penalty,
        ..
    } = best;
    stdout.line(format_args!(
        "best: beam {beam}, length penalty {length_penalty}"
    ))?;
    if !args.dry_run {
        contents.set_decode(&DecodeConfig {
            beam,
            length_penalty,
            ..contents.decode.clone()
        })?;
        stdout.line(format_args!("kept in {}", contents.folder.display()))?;
    }
    Ok(stdout.flush()?)
}

/// What is translated.
enum Data {
    Files(TextFile, TextFile),
    /// The validation data of a config.
    Corpus(Corpus),
}

impl Data {
    fn read(args: &Args, model: &Path) -> Result<Self> {
        let (Some(source), Some(reference)) = (&args.source, &args.reference) else {
            return validation_set(model).map(Self::Corpus);
        };
        let (source, reference) = (TextFile::read(source)?, TextFile::read(reference)?);
        check_lines([&source, &reference])?;
        Ok(Self::Files(source, reference))
    }

    fn references(&self) -> &[String] {
        match self {
            Self::Files(_, reference) => &reference.lines,
            Self::Corpus(corpus) => &corpus.target,
        }
    }

    fn translate(&self, translator: &Translator, model: &dyn Seq2Seq) -> Result<Hypotheses> {
        match self {
            Self::Files(source, _) => source.translate(translator, model.source()),
            Self::Corpus(corpus) => Hypotheses::of(translator, &corpus.source),
        }
    }
}
