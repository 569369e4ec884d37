use serde::Serialize;

use super::{CompareOptions, System};
use crate::metrics::{Randomization, Samples, Tally, bootstrap_p_value};

/// A p-value below this is unlikely to be chance.
const THRESHOLD: f64 = 0.05;

/// A metric, and how it was computed.
#[derive(Clone, Debug, Serialize)]
pub struct MetricInfo {
    pub name: &'static str,
    /// As in sacreBLEU, with the settings of each test.
    pub signatures: Vec<String>,
    pub lower_is_better: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct SystemResults {
    pub name: String,
    /// Whether all its translations are those of the baseline.
    pub same_as_baseline: bool,
    /// One for each metric.
    pub results: Vec<SystemResult>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct SystemResult {
    pub metric: &'static str,
    pub score: f64,
    /// The mean of resampled scores, and half the width of the interval that 95 % of them are in.
    pub mean: Option<f64>,
    pub half_width: Option<f64>,
    pub bootstrap: Option<PValue>,
    pub randomization: Option<PValue>,
}

/// How likely so great a difference is if the systems do not differ, roughly.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PValue {
    pub p: f64,
    /// Whether the systems differ and `p` is below 0.05. As in sacreBLEU, `p` is lowest for equal scores.
    pub significant: bool,
}

impl PValue {
    fn new(p: f64, difference: f64) -> Self {
        let significant = p < THRESHOLD && difference != 0.0;
        Self { p, significant }
    }
}

/// The metrics with their signatures. Every system has a tally for each.
pub(super) fn metrics(tallies: &[Vec<Tally>], options: &CompareOptions) -> Vec<MetricInfo> {
    let tallies = tallies.first().into_iter().flatten();
    let info = |tally: &Tally| {
        let score = tally.score();
        let bootstrap = options.bootstrap.map(|test| {
            let (samples, seed) = (test.samples, test.seed);
            score.signature_with(&format!("bs:{samples}|seed:{seed}"))
        });
        let randomization = options.randomization.map(|test| {
            let (samples, seed) = (test.samples, test.seed);
            score.signature_with(&format!("ar:{samples}|seed:{seed}"))
        });
        let mut signatures: Vec<String> = bootstrap.into_iter().chain(randomization).collect();
        if signatures.is_empty() {
            signatures.push(score.signature);
        }
        MetricInfo {
            name: score.name,
            signatures,
            lower_is_better: tally.metric().lower_is_better(),
        }
    };
    tallies.map(info).collect()
}

/// Scores, intervals and p-values of each system.
pub(super) fn results(
    systems: &[System],
    tallies: &[Vec<Tally>],
    options: &CompareOptions,
) -> Vec<SystemResults> {
    let resample = |tallies: &Vec<Tally>| -> Option<Vec<Samples>> {
        let tallies: Vec<&Tally> = tallies.iter().collect();
        options.bootstrap.map(|test| test.samples(&tallies))
    };
    let samples: Vec<_> = tallies.iter().map(resample).collect();
    let numbered = systems.iter().enumerate();
    numbered
        .map(|(i, system)| {
            let pair = [&tallies[0], &tallies[i]];
            let randomized = options.randomization.filter(|_| i > 0);
            let randomized = randomized.map(|test| randomize(test, pair));
            let results = (0..pair[0].len()).map(|m| {
                let [baseline, score] = pair.map(|tallies| tallies[m].score().score);
                let difference = score - baseline;
                let own = samples[i].as_ref().map(|samples| &samples[m]);
                let paired = samples[0].as_ref().map(|samples| &samples[m]).zip(own);
                let paired = paired.filter(|_| i > 0);
                let bootstrap = paired.map(|(b, s)| bootstrap_p_value(difference, b, s));
                let randomization = randomized.as_ref().map(|p_values| p_values[m]);
                let interval = own.map(Samples::interval);
                SystemResult {
                    metric: pair[1][m].metric().name(),
                    score,
                    mean: interval.map(|interval| interval.mean),
                    half_width: interval.map(|interval| interval.half_width),
                    bootstrap: bootstrap.map(|p| PValue::new(p, difference)),
                    randomization: randomization.map(|p| PValue::new(p, difference)),
                }
            });
            SystemResults {
                name: system.name.clone(),
                same_as_baseline: i > 0 && system.lines == systems[0].lines,
                results: results.collect(),
            }
        })
        .collect()
}

fn randomize(test: Randomization, pair: [&Vec<Tally>; 2]) -> Vec<f64> {
    let [baseline, system] = pair.map(|tallies| tallies.iter().collect::<Vec<&Tally>>());
    test.p_values(&baseline, &system)
}
