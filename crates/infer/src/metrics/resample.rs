//! Bootstrap resampling: how much scores vary over test sets that could have been drawn instead (Koehn 2004,
//! "Statistical Significance Tests for Machine Translation Evaluation").

use rayon::prelude::*;

use super::Tally;
use super::metric::Resampled;
use super::numpy;
use super::pcg64::Pcg64;

/// How many test sets are drawn, and from which random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bootstrap {
    pub samples: usize,
    pub seed: u64,
}

/// The scores of resampled test sets, in the order of the draws.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    pub(super) scores: Vec<f64>,
    /// Whether all have only the precision of 32 bits; NumPy then computes with them in 32 bits.
    pub(super) single: bool,
}

/// The mean of resampled scores, and half the width of the interval that 95 % of them are in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub mean: f64,
    pub half_width: f64,
}

/// The seed of sacreBLEU, unless the environment variable `SACREBLEU_SEED` says otherwise.
pub const SEED: u64 = 12345;

/// Indices that are drawn before their samples are scored together: enough for all threads, and few in memory.
const CHUNK: usize = 1 << 20;

impl Bootstrap {
    /// The resampled scores of each tally. All have the same number of sentences, of which the same are drawn.
    pub fn samples(&self, tallies: &[&Tally]) -> Vec<Samples> {
        let mut drawn: Vec<Vec<Resampled>> = vec![Vec::with_capacity(self.samples); tallies.len()];
        let lines = tallies.iter().map(|tally| tally.len()).min().unwrap_or(0);
        let mut random = Pcg64::new(self.seed);
        let at_once = (CHUNK / lines.max(1)).max(64);
        let mut left = if lines == 0 { 0 } else { self.samples };
        while left > 0 {
            let now = at_once.min(left);
            left -= now;
            let indices: Vec<u32> = (0..now * lines)
                .map(|_| random.below(lines as u32))
                .collect();
            for (tally, scores) in tallies.iter().zip(&mut drawn) {
                let samples = indices.par_chunks_exact(lines);
                scores.par_extend(samples.map(|sample| tally.resampled(sample)));
            }
        }
        drawn.iter().map(|scores| Samples::new(scores)).collect()
    }
}

impl Samples {
    fn new(scores: &[Resampled]) -> Self {
        let single = |score: &Resampled| matches!(score, Resampled::Single(_));
        let values = scores.iter().map(|score| match *score {
            Resampled::Single(score) => f64::from(score),
            Resampled::Double(score) => score,
        });
        Self {
            scores: values.collect(),
            single: scores.iter().all(single),
        }
    }

    /// The interval as sacreBLEU's paired tests compute it, with NumPy.
    pub fn interval(&self) -> Interval {
        let sorted = self.sorted();
        Interval {
            mean: numpy::mean(&sorted, self.single),
            half_width: self.half_width(&sorted),
        }
    }

    /// The interval as sacreBLEU's `--confidence` computes it: the same, with an exact mean.
    pub fn exact_interval(&self) -> Interval {
        let sorted = self.sorted();
        let mean = numpy::exact_mean(&sorted);
        Interval {
            mean: if self.single {
                f64::from(mean as f32)
            } else {
                mean
            },
            half_width: self.half_width(&sorted),
        }
    }

    fn sorted(&self) -> Vec<f64> {
        let mut scores = self.scores.clone();
        scores.sort_unstable_by(f64::total_cmp);
        scores
    }

    fn half_width(&self, sorted: &[f64]) -> f64 {
        let lower = sorted.len() / 40;
        let upper = sorted.len().saturating_sub(lower + 1);
        match (sorted.get(lower), sorted.get(upper)) {
            (Some(lower), Some(upper)) => 0.5 * numpy::minus(*upper, *lower, self.single),
            _ => 0.0,
        }
    }
}
