//! Several systems on one test set: scores, confidence intervals and significance tests, scores by length, and the
//! sentences that differ most.
//!
//! | file | contents |
//! |---|---|
//! | `results` | scores, intervals and p-values of each system |
//! | `lengths` | scores of short and long sentences |
//! | `examples` | the sentences that differ most from the baseline's |
//! | `text` | all of it for a terminal |
//! | `html/` | all of it as one page |

mod examples;
mod html;
mod lengths;
mod results;
mod text;

use serde::Serialize;

use crate::Result;
use crate::metrics::{
    Bootstrap, Chrf, Metric, MetricChoice, MetricOptions, Randomization, SEED, Tally,
};
pub use examples::{Differences, Example, ScoredLine};
pub use lengths::{Bucket, ByLength, Side, Unit};
pub use results::{MetricInfo, PValue, SystemResult, SystemResults};

/// The translations of a test set by one system.
#[derive(Clone, Debug)]
pub struct System {
    pub name: String,
    pub lines: Vec<String>,
}

/// What was translated, and how it should have been. Source and references have a line for each translation.
#[derive(Clone, Debug, Default)]
pub struct TestSet {
    pub source: Option<Vec<String>>,
    pub references: Vec<Vec<String>>,
}

/// What is computed. The defaults are those of sacreBLEU, with paired bootstrap resampling.
#[derive(Clone, Debug)]
pub struct CompareOptions {
    pub metrics: Vec<MetricChoice>,
    pub metric_options: MetricOptions,
    pub bootstrap: Option<Bootstrap>,
    pub randomization: Option<Randomization>,
    /// How many sentences of each system are shown.
    pub shown: usize,
}

/// How systems differ from the first of them, the baseline.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    pub sentences: usize,
    pub references: usize,
    pub tests: Tests,
    pub metrics: Vec<MetricInfo>,
    pub systems: Vec<SystemResults>,
    pub by_length: ByLength,
    pub differences: Vec<Differences>,
}

/// The tests that were made.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Tests {
    /// The number of resampled test sets.
    pub bootstrap_samples: Option<usize>,
    /// The number of trials.
    pub randomization_samples: Option<usize>,
    pub seed: Option<u64>,
}

impl Default for CompareOptions {
    fn default() -> Self {
        Self {
            metrics: MetricChoice::SACREBLEU.to_vec(),
            metric_options: MetricOptions::default(),
            bootstrap: Some(Bootstrap {
                samples: 1000,
                seed: SEED,
            }),
            randomization: None,
            shown: 5,
        }
    }
}

/// Compares systems with the first of them. All have a line for each line of the references.
pub fn compare(
    systems: &[System],
    test_set: &TestSet,
    options: &CompareOptions,
) -> Result<Comparison> {
    let choices = options.metrics.iter();
    let metrics: Vec<Box<dyn Metric>> = choices
        .map(|choice| choice.metric(options.metric_options))
        .collect();
    let tallies = |system: &System| -> Result<Vec<Tally>> {
        let tally = |metric| Tally::new(metric, &system.lines, &test_set.references);
        let metrics = metrics.iter().map(|metric| tally(&**metric));
        Ok(metrics.collect::<std::result::Result<_, _>>()?)
    };
    let tallies = systems.iter().map(tallies).collect::<Result<Vec<_>>>()?;
    let seed = options.bootstrap.map(|test| test.seed);
    let seed = seed.or(options.randomization.map(|test| test.seed));

    let chrf = Chrf {
        lowercase: options.metric_options.lowercase,
        words: false,
    };
    let sentences = |system: &System| Tally::new(&chrf, &system.lines, &test_set.references);
    let sentences = systems.iter().map(sentences);
    let sentences = sentences.collect::<std::result::Result<Vec<_>, _>>()?;
    Ok(Comparison {
        sentences: systems.first().map_or(0, |system| system.lines.len()),
        references: test_set.references.len(),
        tests: Tests {
            bootstrap_samples: options.bootstrap.map(|test| test.samples),
            randomization_samples: options.randomization.map(|test| test.samples),
            seed,
        },
        metrics: results::metrics(&tallies, options),
        systems: results::results(systems, &tallies, options),
        by_length: ByLength::new(test_set, &tallies),
        differences: examples::differences(systems, test_set, &sentences, options.shown),
    })
}

impl Comparison {
    /// Tables and sentences for a terminal, without a line feed at the end.
    pub fn text(&self) -> String {
        text::write(self)
    }

    /// Everything as JSON.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("strings and finite numbers always serialize")
    }

    /// One page that needs nothing else.
    pub fn html(&self) -> String {
        html::write(self)
    }
}
