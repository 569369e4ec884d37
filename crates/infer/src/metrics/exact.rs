//! Exact match: the share of lines that equal their reference. For labels, answers and captions, where there is
//! little to be nearly right about.

use super::metric::{Metric, Real, Resampled};
use super::text::{cased, words};

/// The share of lines with the words of a reference, in percent. Words are separated by whitespace; how much of it
/// there is does not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exact {
    pub lowercase: bool,
}

impl Metric for Exact {
    fn name(&self) -> &'static str {
        "exact"
    }

    fn settings(&self) -> String {
        let case = if self.lowercase { "lc" } else { "mixed" };
        format!("case:{case}|tok:none")
    }

    /// Matches and lines.
    fn width(&self) -> usize {
        2
    }

    fn statistics(&self, hypothesis: &str, references: &[&str]) -> Vec<f64> {
        let hypothesis = cased(hypothesis, self.lowercase);
        let equal =
            |reference: &&str| words(&cased(reference, self.lowercase)).eq(words(&hypothesis));
        vec![f64::from(references.iter().any(equal)), 1.0]
    }

    fn score(&self, sums: &[f64]) -> f64 {
        share(sums)
    }

    fn score_resampled(&self, sums: &[f32]) -> Resampled {
        Resampled::Double(share(&[f64::from(sums[0]), f64::from(sums[1])]))
    }

    fn details(&self, sums: &[f64]) -> String {
        format!("{:.0}/{:.0}", sums[0], sums[1])
    }
}

/// 0 without lines.
fn share<F: Real>(sums: &[F]) -> F {
    let (matches, lines) = (sums[0], sums[1]);
    if lines > F::from(0) {
        F::from(100) * matches / lines
    } else {
        F::from(0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Bootstrap, Randomization, SEED, Tally, bootstrap_p_value};
    use super::*;

    fn score(exact: Exact, hypotheses: &[&str], references: &[Vec<&str>]) -> String {
        let tally = Tally::new(&exact, hypotheses, references).unwrap();
        tally.score().to_string()
    }

    #[test]
    fn a_line_counts_if_its_words_are_those_of_a_reference() {
        let hypotheses = ["garden", "the  garden ", "Garden", "", "garden kitchen"];
        let references = ["garden", "the garden", "garden", "", "garden"];
        let mixed = Exact::default();
        let shown = score(mixed, &hypotheses, &[references.to_vec()]);
        assert_eq!(shown, "exact = 60.00 3/5");
        let lower = Exact { lowercase: true };
        let shown = score(lower, &hypotheses, &[references.to_vec()]);
        assert_eq!(shown, "exact = 80.00 4/5");
        let others = vec!["x", "x", "Garden", "x", "x"];
        let shown = score(mixed, &hypotheses, &[references.to_vec(), others]);
        assert_eq!(shown, "exact = 80.00 4/5");
    }

    #[test]
    fn intervals_and_tests_are_those_of_a_share() {
        let references = [vec!["a"; 200]];
        let right = |share: usize| -> Vec<&str> {
            let line = |i: usize| if i % 10 < share { "a" } else { "b" };
            (0..200).map(line).collect()
        };
        let exact = Exact::default();
        let [low, high] = [5, 8].map(|n| Tally::new(&exact, &right(n), &references).unwrap());
        let bootstrap = Bootstrap {
            samples: 1000,
            seed: SEED,
        };
        let samples = bootstrap.samples(&[&low, &high]);
        // The share of 200 draws at a half has a standard deviation of 3.54 percent.
        let interval = samples[0].exact_interval();
        assert!((interval.mean - 50.0).abs() < 0.5, "{interval:?}");
        assert!(
            (interval.half_width - 1.96 * 3.54).abs() < 0.7,
            "{interval:?}"
        );
        assert!(bootstrap_p_value(30.0, &samples[0], &samples[1]) < 0.01);
        let test = Randomization {
            samples: 500,
            seed: SEED,
        };
        assert_eq!(test.p_values(&[&low], &[&high]), [1.0 / 501.0]);
    }
}
