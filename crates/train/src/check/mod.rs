//! Reads everything that a config names, and tells what training would do, before a step is taken.

mod histogram;
mod report;
mod scan;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use attend_data::{BadLines, Dataset, Input, Mixture, SourceKind};
use attend_infer::run::{RunFolder, TrainerState};
use attend_model::Weights;

pub use report::{CorpusReport, Dropped, Problem, Report, Stage, Timing};

use crate::compute::Compute;
use crate::config::Config;
use crate::corpora::Corpora;
use crate::open::check_unused;
use crate::setup::Setup;
use crate::storage::{self, Lock};
use crate::{Error, Result, Run, Start};
use histogram::Histogram;
use scan::Scan;

/// Updates that are timed, after one that is not: buffers are made in the first.
const TIMED: u64 = 3;

/// Checks a config. `shown` is how many dropped pairs are shown for each reason.
///
/// What keeps training from starting is in the report. Only the config itself is an error.
pub fn check(config: &Config, shown: usize, compute: Compute) -> Result<Report> {
    let mut report = Report::default();
    let folder = RunFolder::new(&config.out);
    report.note(check_unused(&folder, Start::New));
    report.note(storage::check_writable(folder.path()));
    let corpora = match Corpora::find(config) {
        Ok(corpora) => corpora,
        Err(error) => {
            report.problems.push(Problem::of(&error));
            return Ok(report);
        }
    };
    let scan = Scan::read(&corpora);
    for (file, error) in &scan.errors {
        let skipped = error.is_bad_line() && config.data.bad_lines == BadLines::Skip;
        if !skipped {
            report.problems.push(Problem::of_data(file, error));
        }
    }
    report.bad_lines = scan.bad_lines;
    report.overlap = scan.overlap;
    report.note(corpora.test_set());
    if report.could_start() {
        let training = train_a_little(config, &corpora, shown, compute, &mut report);
        report.note(training);
    }
    Ok(report)
}

/// Makes the tokenizer, the cache and the model, and does a few updates.
fn train_a_little(
    config: &Config,
    corpora: &Corpora,
    shown: usize,
    compute: Compute,
    report: &mut Report,
) -> Result<()> {
    let scratch = tempfile::tempdir().map_err(|source| Error::Write {
        path: std::env::temp_dir(),
        source,
    })?;
    let mut config = config.clone();
    config.data.cache = Some(corpora.cache().folder().to_path_buf());
    config.out = scratch.path().to_path_buf();
    let setup = Setup::new(config.clone(), corpora, compute)?;
    let (mixture, validation) = (setup.training(), setup.validation());
    for (text, dataset) in corpora.texts().iter().zip(mixture.datasets()) {
        let report_of_corpus = corpus_report(text.name(), text.files(), dataset);
        report.training.push(report_of_corpus);
        let dropped = scan::dropped(text, dataset, shown)?;
        report.dropped.extend(dropped);
    }
    report.validation = validation.map(|data| {
        let mut held_out = corpora.held_out();
        let inputs = held_out.find(|(name, _)| *name == "validation");
        let files = inputs
            .into_iter()
            .flat_map(|(_, inputs)| inputs)
            .flat_map(Input::files);
        let files = files.map(Into::into).collect();
        corpus_report("validation".into(), files, data)
    });
    report.note(corpora.read_test_sources(setup.tokenizers()));
    report.parameters = parameters(setup.weights());
    report.vocabulary = setup.vocabulary();
    report.memory = setup.memory_estimate();
    report.cache = corpora.cache().folder().to_path_buf();
    let folder = RunFolder::new(&config.out);
    let lock = Lock::acquire(&folder)?;
    let mixture = setup.training().clone();
    let mut run = setup.silent_run(TrainerState::default(), Some(lock))?;
    report.stages = stages(&mixture, &run);
    report.timing = Some(time(&mut run, &mixture)?);
    Ok(())
}

fn corpus_report(name: String, files: Vec<PathBuf>, dataset: &Dataset) -> CorpusReport {
    let tokens = dataset.tokens();
    let unknown = dataset.unknown();
    let share = |unknown: usize, tokens: usize| unknown as f64 / tokens.max(1) as f64;
    let lengths = || (0..dataset.len()).map(|pair| dataset.lengths(pair));
    CorpusReport {
        name,
        files,
        counts: *dataset.counts(),
        source_kind: SourceKind::of(dataset.source()),
        source_tokens: tokens.source as u64,
        target_tokens: tokens.target as u64,
        source_unknown: share(unknown.source, tokens.source),
        target_unknown: share(unknown.target, tokens.target),
        source_lengths: Histogram::of(lengths().map(|lengths| lengths.source)),
        target_lengths: Histogram::of(lengths().map(|lengths| lengths.target)),
    }
}

/// The number of parameters of each part of the model, by the first part of their names.
fn parameters(weights: &Weights) -> BTreeMap<String, u64> {
    let mut parts = BTreeMap::new();
    for weight in weights.iter() {
        let name = weight.name();
        let name = name.strip_prefix("model.").unwrap_or(name);
        let part = name.split('.').next().unwrap_or(name);
        *parts.entry(part.to_string()).or_insert(0) += weight.value().elem_count() as u64;
    }
    parts
}

fn stages(mixture: &Mixture, run: &Run) -> Vec<Stage> {
    let stages = 0..mixture.stages();
    let stage = |stage: u64| Stage {
        from_step: mixture.stage_start(stage),
        pairs: mixture.epoch_pairs(stage),
        batches: run.batcher.count(stage),
    };
    stages.map(stage).collect()
}

/// Does a few updates of the first stage.
fn time(run: &mut Run, mixture: &Mixture) -> Result<Timing> {
    let batches = run.batcher.count(0).max(1);
    let mut tokens = 0;
    let mut start = Instant::now();
    for update in 0..=TIMED {
        if update == 1 {
            start = Instant::now();
        }
        let mut next = run.next_update()?;
        for micro in 0..next.batches.len() {
            let loss = run.forward(&mut next, micro)?;
            loss.backward(1.0 / next.tokens as f64, run.model.weights().params())?;
        }
        run.update(&mut next)?;
        if update > 0 {
            tokens += next.tokens as u64;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let updates = batches.div_ceil(run.config.train.accumulate as u64);
    Ok(Timing {
        tokens_per_second: tokens as f64 / seconds,
        seconds_per_epoch: seconds / TIMED as f64 * updates as f64,
        pairs_per_epoch: mixture.epoch_pairs(0),
    })
}
