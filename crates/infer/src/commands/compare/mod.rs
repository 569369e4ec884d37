mod systems;

use std::path::{Path, PathBuf};

use attend_cli::ComputeArgs;
use attend_infer::compare::{CompareOptions, TestSet, compare};
use attend_infer::metrics::{self, Bootstrap, MetricChoice, Randomization};
use attend_infer::{Error, Result};

use super::metric_args::{MetricArgs, ordered};
use super::output::{Output, check_apart, check_writable};
use super::test_set::{TextFile, check_lines};
use systems::{Candidate, Saver, is_model, no_source};

/// Compare systems on a test set: scores, whether they differ by more than chance, and where they differ.
///
/// Each system is a model, which translates --src with its own search options, or a file of translations. The first is
/// the baseline, which the others are compared with. Scores, intervals and p-values equal sacreBLEU's.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  infer compare runs/small runs/base --src test.en --ref test.de
  infer compare greedy.de beam.de --ref test.de --test both
  infer compare runs/small runs/base google.de.gz --src test.en --ref test.de --ref test2.de -o compare.html
  infer compare a.zh b.zh --ref test.zh --tokenize zh --metrics bleu,chrf --json")]
pub(crate) struct Args {
    /// Models (run folder, checkpoint, bundle or hf://OWNER/NAME) or files of translations, UTF-8 text, one sentence
    /// per line, plain or compressed with gzip, zstd or xz; `-` is standard input
    #[arg(value_name = "SYSTEM", required = true)]
    systems: Vec<PathBuf>,

    /// Source sentences, which models translate; or the paths of pictures, relative to the file's folder.
    /// FILE.tsv:COLUMN is a column of a table
    #[arg(long = "src", value_name = "FILE")]
    source: Option<PathBuf>,

    /// Reference translations, on the same lines, also FILE.tsv:COLUMN; may be given several times
    #[arg(long = "ref", value_name = "FILE", required = true)]
    references: Vec<PathBuf>,

    /// Write a page with everything to this file
    #[arg(short, long, value_name = "FILE.html")]
    output: Option<PathBuf>,

    /// Print everything as JSON
    #[arg(long)]
    json: bool,

    /// Write the translations of each model to a file in this folder
    #[arg(long, value_name = "FOLDER")]
    save_translations: Option<PathBuf>,

    /// How many sentences of each system to show that differ most from the baseline's
    #[arg(long, value_name = "N", default_value_t = 5)]
    show: usize,

    /// Compute these metrics, separated by commas: bleu, chrf, chrf++, ter, exact
    #[arg(
        long,
        value_name = "NAMES",
        value_enum,
        value_delimiter = ',',
        default_value = "bleu,chrf,chrf++,ter",
        hide_possible_values = true
    )]
    metrics: Vec<MetricChoice>,

    /// How to test whether systems differ: bootstrap resamples the test set and gives intervals too, randomization
    /// exchanges translations between the systems, both does both
    #[arg(
        long,
        value_name = "bootstrap|randomization|both",
        value_enum,
        default_value = "bootstrap",
        hide_possible_values = true
    )]
    test: TestChoice,

    /// How many test sets are resampled, or how often translations are exchanged [default: 1000 and 10000]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=10_000_000)
    )]
    samples: Option<u32>,

    /// Draw other samples; the same number draws the same, as with SACREBLEU_SEED
    #[arg(long, value_name = "N", default_value_t = metrics::SEED)]
    seed: u64,

    #[command(flatten)]
    metric_args: MetricArgs,

    #[command(flatten)]
    compute: ComputeArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum TestChoice {
    Bootstrap,
    Randomization,
    Both,
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    args.check()?;
    let references = TextFile::read_all(&args.references)?;
    let source = args.source.as_deref().map(TextFile::read).transpose()?;
    let candidates = args.systems.iter().map(|path| Candidate::open(path));
    let candidates = candidates.collect::<Result<Vec<_>>>()?;
    let files = candidates.iter().filter_map(Candidate::file);
    check_lines(references.iter().chain(&source).chain(files))?;
    let saver = args.save_translations.as_deref().map(Saver::new);
    let saver = saver.transpose()?;
    args.output.as_deref().map_or(Ok(()), check_writable)?;

    let (device, kernels) = args.compute.start()?;
    let mut systems = Vec::new();
    for (number, candidate) in (1..).zip(candidates) {
        let is_model = candidate.file().is_none();
        let system = candidate.system(source.as_ref(), &device, kernels)?;
        if let Some(saver) = saver.as_ref().filter(|_| is_model) {
            saver.save(number, &system)?;
        }
        systems.push(system);
    }
    let test_set = TestSet {
        source: source.map(|file| file.lines),
        references: references.into_iter().map(|file| file.lines).collect(),
    };
    let comparison = compare(&systems, &test_set, &args.options())?;
    if let Some(path) = args.output.as_deref() {
        let mut page = Output::open(Some(path))?;
        page.line(comparison.html().trim_end())?;
        page.flush()?;
    }
    let mut stdout = Output::open(None)?;
    stdout.line(if args.json {
        comparison.json()
    } else {
        comparison.text()
    })?;
    Ok(stdout.flush()?)
}

impl Args {
    fn check(&self) -> Result<()> {
        if self.systems.len() < 2 {
            return Err(Error::Usage {
                message: "there is only one system".into(),
                hint: "give at least two systems, the baseline first; `infer evaluate` scores one"
                    .into(),
            });
        }
        let mut models = self.systems.iter().filter(|path| is_model(path));
        if let (None, Some(model)) = (&self.source, models.next()) {
            return Err(no_source(model));
        }
        if self.output.as_deref() == Some(Path::new("-")) {
            return Err(Error::Usage {
                message: "-o -: the page cannot be printed".into(),
                hint: "give -o the name of a file, such as compare.html".into(),
            });
        }
        let inputs = || {
            self.systems
                .iter()
                .chain(&self.source)
                .chain(&self.references)
        };
        if let Some(folder) = &self.save_translations {
            for (number, system) in (1..).zip(&self.systems).filter(|(_, it)| is_model(it)) {
                let saved = Saver::path(folder, number, system);
                check_apart(Some(&saved), inputs())?;
            }
        }
        check_apart(self.output.as_deref(), inputs())
    }

    fn options(&self) -> CompareOptions {
        let samples = |usual: usize| self.samples.map_or(usual, |samples| samples as usize);
        let (seed, test) = (self.seed, self.test);
        let bootstrap = (test != TestChoice::Randomization).then(|| Bootstrap {
            samples: samples(1000),
            seed,
        });
        let randomization = (test != TestChoice::Bootstrap).then(|| Randomization {
            samples: samples(10_000),
            seed,
        });
        CompareOptions {
            metrics: ordered(&self.metrics),
            metric_options: self.metric_args.options(),
            bootstrap,
            randomization,
            shown: self.show,
        }
    }
}
