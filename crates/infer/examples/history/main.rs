//! Evaluates the runs of `scripts/history.sh`. Writes a table of the results between two markers of a
//! page, and a plot of BLEU by source length to a separate file.

mod page;
mod part;
mod plot;
mod system;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use attend_cli::ComputeArgs;
use clap::Parser;

use page::{Table, thousands};
use part::{Part, words};
use system::System;

/// Evaluate runs and write a table and a plot of their results.
#[derive(Parser)]
struct Cli {
    /// Run folders, one for each system
    #[arg(required = true)]
    runs: Vec<PathBuf>,

    /// Training corpora, without the language: `data/quickstart/train`
    #[arg(long, required = true)]
    train: Vec<PathBuf>,

    /// Test corpora, without the language: `data/quickstart/test`
    #[arg(long, required = true)]
    corpus: Vec<PathBuf>,

    /// Page with the markers between which the table is written. It keeps its rows of other systems
    #[arg(long)]
    page: PathBuf,

    /// SVG file to write the plot to; without it, none is drawn
    #[arg(long)]
    plot: Option<PathBuf>,

    #[command(flatten)]
    compute: ComputeArgs,
}

/// Before the table.
const BEGIN: &str = "<!-- begin: written by scripts/history.sh -->\n";

fn main() -> ExitCode {
    attend_cli::start_log("info");
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => attend_cli::report(&*error, None),
    }
}

fn run(cli: &Cli) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let (device, kernels) = cli.compute.start()?;
    let longest = longest(&cli.train)?;
    let mut parts = Vec::new();
    for path in &cli.corpus {
        parts.extend(Part::of(path, longest)?);
    }
    let mut systems = Vec::new();
    for run in &cli.runs {
        let system = System::measure(run, &parts, &device, kernels)?;
        tracing::info!("{}: {:.2} BLEU", system.name, system.scores[0].score);
        systems.push(system);
    }
    systems.sort_by_key(System::year_and_name);
    let page = fs::read_to_string(&cli.page)?;
    fs::write(&cli.page, table(&systems, &parts).write_to(&page, BEGIN)?)?;
    if let Some(plot) = &cli.plot {
        fs::write(plot, plot::by_length(&systems, longest))?;
    }
    Ok(())
}

/// The number of words in the longest source sentence of the training corpora.
fn longest(corpora: &[PathBuf]) -> attend_data::Result<usize> {
    let mut longest = 0;
    for path in corpora {
        let lengths = part::read(path)?.source;
        longest = longest.max(lengths.iter().map(|line| words(line)).max().unwrap_or(0));
    }
    Ok(longest)
}

fn table(systems: &[System], parts: &[Part]) -> Table {
    let mut heads = vec!["system".into(), "parameters".into(), "tokens/s".into()];
    heads.extend(parts.iter().map(|part| format!("BLEU, {}", part.name)));
    if let Some(Part { name, .. }) = parts.last() {
        heads.push(format!("words right, {name}"));
        heads.push(format!("length, {name}"));
    }
    let mut table = Table::new(&heads);
    for system in systems {
        let name = &system.name;
        let mut cells = vec![
            format!("[{name}](../configs/history/{name}.toml)"),
            thousands(system.parameters),
            thousands(system.tokens_per_second),
        ];
        cells.extend(
            system
                .scores
                .iter()
                .map(|score| format!("{:.2}", score.score)),
        );
        if let Some(last) = system.scores.last() {
            let (words, length) = words_and_length(&last.verbose);
            cells.push(format!("{words}%"));
            cells.push(length.to_string());
        }
        table.push(&cells);
    }
    table
}

/// The unigram precision in percent and the ratio of the translations' length to that of the references, from
/// `87.6/60.0/42.4/30.6 (BP = 0.341 ratio = 0.482 …)`.
fn words_and_length(verbose: &str) -> (&str, &str) {
    let words = verbose.split('/').next().unwrap_or_default();
    let length = verbose.split("ratio = ").nth(1).unwrap_or_default();
    (words, length.split(' ').next().unwrap_or_default())
}
