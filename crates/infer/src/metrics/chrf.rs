//! chrF: the F-score of character n-grams
//! (Popović 2015, "chrF: character n-gram F-score for automatic MT evaluation").

use super::{MetricError, Score, is_space, ngrams, pairs, shared_ngrams};

const ORDER: usize = 6;
const BETA: f64 = 2.0;

/// Corpus chrF2 with one reference: n up to 6, no word n-grams, case-sensitive, without whitespace.
///
/// β = 2 weighs recall twice as much as precision (Popović 2016). As in sacreBLEU, only orders with
/// n-grams in both hypotheses and references count, and no epsilon is added.
pub fn chrf(
    hypotheses: &[impl AsRef<str>],
    references: &[impl AsRef<str>],
) -> Result<Score, MetricError> {
    let mut sum = Counts::default();
    for (hypothesis, reference) in pairs(hypotheses, references)? {
        sum.add(&Counts::segment(&symbols(hypothesis), &symbols(reference)));
    }
    Ok(Score::new(
        "chrF2",
        sum.score(),
        "case:mixed|eff:yes|nc:6|nw:0|space:no",
        String::new(),
    ))
}

/// The counts of a segment, or their sum over a corpus. n-grams are at index n - 1.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    hypothesis: [u64; ORDER],
    reference: [u64; ORDER],
    matches: [u64; ORDER],
}

/// A symbol for each non-whitespace character; never 0.
fn symbols(line: &str) -> Vec<u32> {
    let characters = line.chars().filter(|&c| !is_space(c));
    characters.map(|c| u32::from(c) + 1).collect()
}

impl Counts {
    fn segment(hypothesis: &[u32], reference: &[u32]) -> Self {
        let of_reference = std::array::from_fn(|i| ngrams(reference.len(), i + 1));
        Self {
            // As in sacreBLEU, n-grams of the hypothesis do not count if the reference has none.
            hypothesis: std::array::from_fn(|i| match of_reference[i] {
                0 => 0,
                _ => ngrams(hypothesis.len(), i + 1),
            }),
            reference: of_reference,
            matches: shared_ngrams(hypothesis, reference),
        }
    }

    fn add(&mut self, other: &Self) {
        for i in 0..ORDER {
            self.hypothesis[i] += other.hypothesis[i];
            self.reference[i] += other.reference[i];
            self.matches[i] += other.matches[i];
        }
    }

    /// 100 · (1 + β²) · P · R / (β² · P + R), eq. 1, with P and R averaged over the orders.
    fn score(&self) -> f64 {
        let (mut precision, mut recall, mut orders) = (0.0, 0.0, 0.0);
        for i in 0..ORDER {
            if self.hypothesis[i] > 0 && self.reference[i] > 0 {
                precision += self.matches[i] as f64 / self.hypothesis[i] as f64;
                recall += self.matches[i] as f64 / self.reference[i] as f64;
                orders += 1.0;
            }
        }
        if precision + recall == 0.0 {
            return 0.0;
        }
        let (precision, recall) = (precision / orders, recall / orders);
        let factor = BETA * BETA;
        100.0 * ((1.0 + factor) * precision * recall / (factor * precision + recall))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::golden;
    use super::*;

    #[test]
    fn chrf_equals_sacrebleu() {
        for corpus in golden().corpora {
            let name = &corpus.name;
            let score = chrf(&corpus.hypotheses, &corpus.references).unwrap();
            let error = (score.score - corpus.chrf).abs();
            assert!(error < 1e-9, "{name}: {score}, not {}", corpus.chrf);
            assert_eq!(score.to_string(), corpus.chrf_text, "{name}");
        }
    }

    #[test]
    fn whitespace_does_not_change_chrf() {
        let spaced = chrf(&["a b\u{1f}c\u{2028}d\t"], &["abce"]);
        assert_eq!(spaced, chrf(&["abcd"], &["abce"]));
    }
}
