//! Evaluates models of captions: BLEU and exact match, and the pointing score, which is how much of the attention of
//! the words that name something is where it is in the picture.

#[path = "../history/page.rs"]
mod page;
mod test_set;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use attend_cli::{ComputeArgs, bar};
use attend_infer::metrics::{Exact, Tally, bleu};
use attend_infer::pointing::{PointingMeans, PointingScore};
use attend_infer::{Aligner, Bundle, Hypotheses, Result, Translator};
use attend_model::Kernels;
use candle_core::Device;
use clap::Parser;
use serde::Serialize;

use page::{Table, thousands};
use test_set::TestSet;

/// Measure captions, and how much of the attention of words is within the boxes of what they name.
#[derive(Parser)]
struct Cli {
    /// Run folders, checkpoints or bundles, each with the column of its captions if that is not `en`:
    /// `runs/history/xu-2015-captions-de:de`
    #[arg(required = true, value_name = "RUN[:COLUMN]")]
    runs: Vec<String>,

    /// The captions: TSV with a header. Beside it is what is in each picture and where, a line of JSON for each
    /// line of captions: `test.objects.jsonl` for `test.tsv`
    #[arg(long, default_value = "data/scenes/test.tsv")]
    captions: PathBuf,

    /// The column of the pictures
    #[arg(long, default_value = "picture")]
    picture: String,

    /// Measure only so many captions
    #[arg(long)]
    first: Option<usize>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Page with the markers between which a table of the results is written. It keeps its rows of other systems
    #[arg(long)]
    page: Option<PathBuf>,

    #[command(flatten)]
    compute: ComputeArgs,
}

/// Before the table of the page.
const BEGIN: &str = "<!-- begin captions: written by scripts/history.sh -->\n";

/// The results of one model.
#[derive(Serialize)]
struct Results {
    name: String,
    language: String,
    parameters: usize,
    captions: usize,
    bleu: f64,
    /// Captions that are right to the word, in percent.
    exact: f64,
    pointing: PointingScore,
}

fn main() -> ExitCode {
    attend_cli::start_log("info");
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => attend_cli::report(&*error, None),
    }
}

fn run(cli: &Cli) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let (device, kernels) = cli.compute.start()?;
    let mut all = Vec::new();
    for run in &cli.runs {
        let (run, language) = run.rsplit_once(':').unwrap_or((run, "en"));
        let most = cli.first.unwrap_or(usize::MAX);
        let test_set = TestSet::read(&cli.captions, &cli.picture, language, most)?;
        let results = Results::measure(Path::new(run), language, &test_set, &device, kernels)?;
        print(cli, &results)?;
        all.push(results);
    }
    if let Some(path) = &cli.page {
        let page = fs::read_to_string(path)?;
        fs::write(path, table(&all).write_to(&page, BEGIN)?)?;
    }
    Ok(())
}

impl Results {
    fn measure(
        run: &Path,
        language: &str,
        test_set: &TestSet,
        device: &Device,
        kernels: Kernels,
    ) -> Result<Self> {
        let bundle = Bundle::open(run, device)?;
        let Bundle {
            model,
            tokenizers,
            decode,
            ..
        } = &bundle;
        let translator = Translator::new(&**model, tokenizers, decode, kernels);
        let captions = Hypotheses::of(&translator, &test_set.pictures)?.lines;
        let exact = Exact::default();
        let exact = Tally::new(&exact, &captions, &[&test_set.captions])?.score();
        let aligner = Aligner::new(&**model, tokenizers, decode, kernels);
        let bar = bar(Some(captions.len() as u64));
        let (mut pointed, mut missing) = (Vec::new(), 0);
        for (picture, caption, mentions) in test_set.lines() {
            for words in aligner.point(picture, caption, mentions)? {
                match words {
                    Some(words) => pointed.push(words),
                    None => missing += 1,
                }
            }
            bar.advance(1);
        }
        Ok(Self {
            name: run.file_name().unwrap_or_default().to_string_lossy().into(),
            language: language.into(),
            parameters: model.weights().count(),
            captions: captions.len(),
            bleu: bleu(&captions, &test_set.captions)?.score,
            exact: exact.score,
            pointing: PointingScore::of(&pointed, missing),
        })
    }
}

#[allow(clippy::print_stdout)] // the program's output
fn print(cli: &Cli, results: &Results) -> serde_json::Result<()> {
    if cli.json {
        println!("{}", serde_json::to_string(results)?);
        return Ok(());
    }
    let Results {
        name,
        language,
        parameters,
        captions,
        bleu,
        exact,
        pointing,
    } = results;
    println!("{name} ({language}), {} parameters", thousands(*parameters));
    println!("  captions                       {captions:8}");
    println!("  BLEU                           {bleu:8.2}");
    println!("  exact match                    {exact:8.2}");
    println!("  mentions                       {:8}", pointing.mentions);
    println!("  not in their captions          {:8}", pointing.missing);
    for (words, means) in [
        ("all their words", pointing.words),
        ("their nouns", pointing.nouns),
    ] {
        println!("  {words}");
        println!("    attention within the boxes   {:8.4}", means.within);
        println!("    share that the boxes cover   {:8.4}", means.area);
        println!("    ratio                        {:8.2}", means.ratio);
        println!("    most attention is in a box   {:8.4}", means.hits);
    }
    Ok(())
}

fn table(all: &[Results]) -> Table {
    let columns = [
        "system",
        "language",
        "parameters",
        "BLEU",
        "exact",
        "attention in the boxes",
        "times their share",
        "nouns alone",
        "times their share",
    ];
    let mut table = Table::new(&columns.map(String::from));
    for results in all {
        // Runs in other languages have names of their own, but not configs.
        let (name, language) = (&results.name, &results.language);
        let config = name.strip_suffix(&format!("-{language}")).unwrap_or(name);
        let mut cells = vec![
            format!("[{name}](../configs/history/{config}.toml)"),
            language.clone(),
            thousands(results.parameters),
            format!("{:.2}", results.bleu),
            format!("{:.1}%", results.exact),
        ];
        for PointingMeans { within, ratio, .. } in [results.pointing.words, results.pointing.nouns]
        {
            cells.push(format!("{:.1}%", 100.0 * within));
            cells.push(format!("{ratio:.1}"));
        }
        table.push(&cells);
    }
    table
}
