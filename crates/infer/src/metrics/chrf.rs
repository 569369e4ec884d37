//! chrF: the F-score of character n-grams
//! (Popović 2015, "chrF: character n-gram F-score for automatic MT evaluation"), and chrF++, which counts
//! n-grams of one and two words too (Popović 2017, "chrF++: words helping character n-grams").

use super::metric::{Metric, Real, Resampled};
use super::ngrams::{Ngrams, WordIds};
use super::text::{cased, is_space, words};
use super::{MetricError, Score, Tally};

const CHARACTERS: usize = 6;
const WORDS: usize = 2;
const BETA: u8 = 2;

/// chrF2 or chrF2++, without whitespace.
///
/// β = 2 weighs recall twice as much as precision (Popović 2016). As in sacreBLEU, only orders with
/// n-grams in both hypotheses and references count, and no epsilon is added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chrf {
    pub lowercase: bool,
    /// Count n-grams of words too.
    pub words: bool,
}

/// Corpus chrF2 with one reference, case-sensitive.
pub fn chrf(
    hypotheses: &[impl AsRef<str>],
    references: &[impl AsRef<str>],
) -> Result<Score, MetricError> {
    Ok(Tally::new(&Chrf::default(), hypotheses, &[references])?.score())
}

impl Metric for Chrf {
    fn name(&self) -> &'static str {
        match self.words {
            true => "chrF2++",
            false => "chrF2",
        }
    }

    fn settings(&self) -> String {
        let case = if self.lowercase { "lc" } else { "mixed" };
        let words = if self.words { WORDS } else { 0 };
        format!("case:{case}|eff:yes|nc:{CHARACTERS}|nw:{words}|space:no")
    }

    fn width(&self) -> usize {
        3 * (CHARACTERS + if self.words { WORDS } else { 0 })
    }

    /// Those of the reference that gives the best score: n-grams of the hypothesis, of the reference and of both, for
    /// each order.
    fn statistics(&self, hypothesis: &str, references: &[&str]) -> Vec<f64> {
        let hypothesis = cased(hypothesis, self.lowercase);
        let references = references.iter().map(|line| cased(line, self.lowercase));
        let references: Vec<_> = references.collect();
        let mut ids = WordIds::default();
        let characters = Ngrams::<CHARACTERS>::new(&symbols(&hypothesis));
        let in_words = self
            .words
            .then(|| Ngrams::<WORDS>::new(&ids.of(parts(&hypothesis))));

        let mut best: Option<(f64, Vec<f64>)> = None;
        for reference in &references {
            let mut counts = Vec::with_capacity(self.width());
            count(&characters, Ngrams::new(&symbols(reference)), &mut counts);
            if let Some(in_words) = &in_words {
                count(
                    in_words,
                    Ngrams::new(&ids.of(parts(reference))),
                    &mut counts,
                );
            }
            let score = f_score(&counts).unwrap_or(0.0);
            if best.as_ref().is_none_or(|(highest, _)| score > *highest) {
                best = Some((score, counts));
            }
        }
        best.map_or_else(|| vec![0.0; self.width()], |(_, counts)| counts)
    }

    fn score(&self, sums: &[f64]) -> f64 {
        f_score(sums).unwrap_or(0.0)
    }

    fn score_resampled(&self, sums: &[f32]) -> Resampled {
        f_score(sums).map_or(Resampled::Double(0.0), Resampled::Single)
    }
}

/// A symbol for each non-whitespace character; never 0.
fn symbols(line: &str) -> Vec<u32> {
    let characters = line.chars().filter(|&c| !is_space(c));
    characters.map(|c| u32::from(c) + 1).collect()
}

/// Words, with one ASCII punctuation mark at the end separated, or otherwise one at the start.
fn parts(line: &str) -> impl Iterator<Item = &str> {
    words(line).flat_map(|word| {
        let last = word.char_indices().last().filter(|(at, _)| *at > 0);
        let (left, right) = match last {
            Some((at, c)) if c.is_ascii_punctuation() => word.split_at(at),
            Some(_) if word.starts_with(|c: char| c.is_ascii_punctuation()) => word.split_at(1),
            _ => (word, ""),
        };
        [left, right].into_iter().filter(|part| !part.is_empty())
    })
}

/// For each order, the n-grams of the hypothesis, of the reference and of both.
fn count<const N: usize>(hypothesis: &Ngrams<N>, reference: Ngrams<N>, counts: &mut Vec<f64>) {
    let of_reference: [usize; N] = std::array::from_fn(|i| reference.count(i + 1));
    let matches = hypothesis.shared(&[reference]);
    for i in 0..N {
        // As in sacreBLEU, n-grams of the hypothesis do not count if the reference has none.
        let of_hypothesis = match of_reference[i] {
            0 => 0,
            _ => hypothesis.count(i + 1),
        };
        counts.extend([of_hypothesis, of_reference[i], matches[i]].map(|count| count as f64));
    }
}

/// 100 · (1 + β²) · P · R / (β² · P + R), eq. 1, with P and R averaged over the orders. `None` is 0: there is no
/// match.
fn f_score<F: Real>(sums: &[F]) -> Option<F> {
    let zero = F::from(0);
    let (mut precision, mut recall, mut orders) = (zero, zero, zero);
    let (counts, _) = sums.as_chunks::<3>();
    for &[hypothesis, reference, matches] in counts {
        if hypothesis > zero && reference > zero {
            precision = precision + matches / hypothesis;
            recall = recall + matches / reference;
            orders = orders + F::from(1);
        }
    }
    if precision + recall == zero {
        return None;
    }
    let (precision, recall) = (precision / orders, recall / orders);
    let factor = F::from(BETA * BETA);
    let above = (F::from(1) + factor) * precision * recall;
    Some(F::from(100) * (above / (factor * precision + recall)))
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

    #[test]
    fn one_mark_is_separated_from_a_word() {
        let of = |line| parts(line).collect::<Vec<_>>();
        assert_eq!(
            of("(hi) «no» ?! é. .é"),
            ["(hi", ")", "«no»", "?", "!", "é", ".", ".", "é"]
        );
        assert_eq!(of(". a"), [".", "a"]);
    }
}
