//! Whether two systems differ by more than chance: the paired tests of sacreBLEU.

use rayon::prelude::*;

use super::numpy;
use super::pcg64::Pcg64;
use super::{Samples, Tally};

/// The p-value of a difference in score by paired bootstrap resampling (Koehn 2004): how often a resampled difference
/// is more than the mean of them by more than the real difference. Both systems were resampled with the same draws.
pub fn bootstrap_p_value(difference: f64, baseline: &Samples, system: &Samples) -> f64 {
    let single = baseline.single && system.single;
    let pairs = system.scores.iter().zip(&baseline.scores);
    let differences: Vec<f64> = pairs
        .map(|(system, baseline)| numpy::minus(*system, *baseline, single).abs())
        .collect();
    let mean = numpy::mean(&differences, single);
    let real = match single {
        true => f64::from(difference.abs() as f32),
        false => difference.abs(),
    };
    let greater = differences
        .iter()
        .filter(|sampled| numpy::minus(**sampled, mean, single) > real);
    p_value(greater.count(), differences.len())
}

/// Approximate randomisation (Riezler and Maxwell 2005, "On Some Pitfalls in Automatic Evaluation and Significance
/// Testing for MT"): each sentence is translated by the one or the other of two systems, at random. How often do
/// systems mixed so differ more than the real ones?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Randomization {
    pub samples: usize,
    pub seed: u64,
}

/// Bits that are drawn before their trials are scored together.
const CHUNK: usize = 1 << 24;

impl Randomization {
    /// The p-values of the differences between the tallies of the baseline and those of the system, by the same metrics
    /// in the same order.
    pub fn p_values(&self, baseline: &[&Tally], system: &[&Tally]) -> Vec<f64> {
        let pairs: Vec<Exchange> = baseline
            .iter()
            .zip(system)
            .map(|(baseline, system)| Exchange::new(baseline, system))
            .collect();
        let lines = baseline.iter().chain(system).map(|tally| tally.len()).min();
        let lines = lines.unwrap_or(0);
        let mut greater = vec![0; pairs.len()];
        let mut bits = Bits::new(self.seed);
        let at_once = (CHUNK / lines.max(1)).max(64);
        let mut left = if lines == 0 { 0 } else { self.samples };
        while left > 0 {
            let now = at_once.min(left);
            left -= now;
            let trials: Vec<Vec<u64>> = (0..now).map(|_| bits.draw(lines)).collect();
            for (pair, greater) in pairs.iter().zip(&mut greater) {
                let differs = |trial: &&Vec<u64>| pair.difference(trial) > pair.real;
                *greater += trials.par_iter().filter(differs).count();
            }
        }
        let counts = greater.into_iter();
        counts.map(|count| p_value(count, self.samples)).collect()
    }
}

/// `+ 1`: the real systems are one of the trials.
fn p_value(greater: usize, trials: usize) -> f64 {
    (greater + 1) as f64 / (trials + 1) as f64
}

/// Two systems under a metric, to exchange sentences between them.
struct Exchange<'t> {
    baseline: &'t Tally<'t>,
    /// The sums of both systems.
    sums: [Vec<f64>; 2],
    /// Sentences whose statistics differ, and the baseline's minus the system's.
    differing: Vec<(usize, Vec<f64>)>,
    real: f64,
}

impl<'t> Exchange<'t> {
    fn new(baseline: &'t Tally, system: &'t Tally) -> Self {
        let lines = baseline.len().min(system.len());
        let differences = (0..lines).map(|line| {
            let rows = baseline.row(line).iter().zip(system.row(line));
            (line, rows.map(|(b, s)| b - s).collect::<Vec<f64>>())
        });
        let sums = [baseline.sums(), system.sums()];
        let [b, s] = sums.each_ref().map(|sums| baseline.metric().score(sums));
        Self {
            baseline,
            sums,
            differing: differences
                .filter(|(_, row)| row.iter().any(|value| *value != 0.0))
                .collect(),
            real: (b - s).abs(),
        }
    }

    /// How much the score of the baseline's sentences where the bit is 1 and of the system's elsewhere differs from
    /// that of all others. What is exchanged are whole numbers: lengths of references are the same in both systems. So
    /// nothing is rounded, and equal differences are equal.
    fn difference(&self, bits: &[u64]) -> f64 {
        let [mut others, mut these] = self.sums.clone();
        for (line, row) in &self.differing {
            if bits[line / 64] >> (line % 64) & 1 == 1 {
                for (i, value) in row.iter().enumerate() {
                    these[i] += value;
                    others[i] -= value;
                }
            }
        }
        let metric = self.baseline.metric();
        (metric.score(&these) - metric.score(&others)).abs()
    }
}

/// Random bits in the order of NumPy's `integers(2, dtype=bool)`: the lowest bit of each 32 first.
struct Bits {
    random: Pcg64,
    word: u32,
    left: u32,
}

impl Bits {
    fn new(seed: u64) -> Self {
        let random = Pcg64::new(seed);
        Self {
            random,
            word: 0,
            left: 0,
        }
    }

    fn draw(&mut self, count: usize) -> Vec<u64> {
        let mut bits = vec![0; count.div_ceil(64)];
        for i in 0..count {
            if self.left == 0 {
                (self.word, self.left) = (self.random.next_u32(), 32);
            }
            bits[i / 64] |= u64::from(self.word & 1) << (i % 64);
            self.word >>= 1;
            self.left -= 1;
        }
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::golden;
    use super::super::{Bleu, Bootstrap, Chrf};
    use super::*;

    #[test]
    fn bits_equal_numpy() {
        for draw in golden().draws {
            let mut bits = Bits::new(draw.seed);
            let ours: String = (0..draw.bits.len())
                .map(|_| if bits.draw(1)[0] == 1 { '1' } else { '0' })
                .collect();
            assert_eq!(ours, draw.bits, "seed {}", draw.seed);
        }
    }

    #[test]
    fn a_system_does_not_differ_from_itself() {
        let lines = ["a b c d e", "f g h i j k", "l m n"];
        let references = [["a b c d x", "f g h i j", "l m n"]];
        let metric = Bleu::default();
        let bleu = Tally::new(&metric, &lines, &references).unwrap();
        let samples = Bootstrap {
            samples: 50,
            seed: 1,
        }
        .samples(&[&bleu]);
        // No difference is greater than none.
        let p = bootstrap_p_value(0.0, &samples[0], &samples[0]);
        assert_eq!(p, 1.0 / 51.0);
        let test = Randomization {
            samples: 50,
            seed: 1,
        };
        assert_eq!(test.p_values(&[&bleu], &[&bleu]), [1.0 / 51.0]);
    }

    #[test]
    fn one_sentence_has_p_values() {
        let references = [["a b c d e"]];
        let metric = Chrf::default();
        let [left, right] =
            [["a b c d"], ["x y z"]].map(|lines| Tally::new(&metric, &lines, &references).unwrap());
        let test = Randomization {
            samples: 20,
            seed: 1,
        };
        // Exchanging the only sentence changes nothing but the order of the two.
        assert_eq!(test.p_values(&[&left], &[&right]), [1.0 / 21.0]);
    }
}
