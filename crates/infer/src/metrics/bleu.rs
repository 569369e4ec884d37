//! BLEU: the geometric mean of n-gram precisions, times a brevity penalty (Papineni et al. 2002,
//! "BLEU: a Method for Automatic Evaluation of Machine Translation").

use std::collections::HashMap;

use super::tokenize_13a::tokenize;
use super::{MetricError, Score, ngrams, pairs, shared_ngrams};

const ORDER: usize = 4;

/// Corpus BLEU with one reference: n up to 4, 13a tokenisation, case-sensitive, exponential smoothing.
///
/// n-grams are counted over the whole corpus: the score is not an average over sentences. Smoothing
/// differs from the paper only if an order has no match: Chen and Cherry (2014), method 3.
pub fn bleu(
    hypotheses: &[impl AsRef<str>],
    references: &[impl AsRef<str>],
) -> Result<Score, MetricError> {
    let counts = corpus_counts(hypotheses, references)?;
    Ok(Score::new(
        "BLEU",
        counts.score(),
        "case:mixed|eff:no|tok:13a|smooth:exp",
        counts.verbose(),
    ))
}

/// The counts of a segment, or their sum over a corpus. n-grams are at index n - 1.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    hypothesis: u64, // tokens
    reference: u64,  // tokens
    matches: [u64; ORDER],
    totals: [u64; ORDER],
}

/// Word ids, from 1.
#[derive(Default)]
struct Vocabulary(HashMap<String, u32>);

fn corpus_counts(
    hypotheses: &[impl AsRef<str>],
    references: &[impl AsRef<str>],
) -> Result<Counts, MetricError> {
    let mut vocabulary = Vocabulary::default();
    let mut sum = Counts::default();
    for (hypothesis, reference) in pairs(hypotheses, references)? {
        let hypothesis = vocabulary.tokens(hypothesis);
        let reference = vocabulary.tokens(reference);
        sum.add(&Counts::segment(&hypothesis, &reference));
    }
    Ok(sum)
}

impl Counts {
    fn segment(hypothesis: &[u32], reference: &[u32]) -> Self {
        Self {
            hypothesis: hypothesis.len() as u64,
            reference: reference.len() as u64,
            matches: shared_ngrams(hypothesis, reference),
            totals: std::array::from_fn(|i| ngrams(hypothesis.len(), i + 1)),
        }
    }

    fn add(&mut self, other: &Self) {
        self.hypothesis += other.hypothesis;
        self.reference += other.reference;
        for i in 0..ORDER {
            self.matches[i] += other.matches[i];
            self.totals[i] += other.totals[i];
        }
    }

    /// BP · exp(Σ log pₙ / 4), §2.3.
    fn score(&self) -> f64 {
        let precisions = self.precisions();
        if precisions.contains(&0.0) {
            return 0.0;
        }
        let logs: f64 = precisions.iter().map(|p| p.ln()).sum();
        self.brevity_penalty() * (logs / ORDER as f64).exp()
    }

    /// The precision of each order, in percent. If no order has a match, all are 0. If no hypothesis
    /// is long enough for an order, that order and all higher ones are 0. Otherwise the k-th order
    /// without a match counts as 1 / 2ᵏ matches.
    fn precisions(&self) -> [f64; ORDER] {
        let mut precisions = [0.0; ORDER];
        if self.matches == [0; ORDER] {
            return precisions;
        }
        let mut halvings = 1.0;
        for (i, precision) in precisions.iter_mut().enumerate() {
            let (matches, total) = (self.matches[i] as f64, self.totals[i] as f64);
            if total == 0.0 {
                break;
            }
            *precision = if matches == 0.0 {
                halvings *= 2.0;
                100.0 / (halvings * total)
            } else {
                100.0 * matches / total
            };
        }
        precisions
    }

    fn brevity_penalty(&self) -> f64 {
        match (self.hypothesis, self.reference) {
            (h, r) if h >= r => 1.0,
            (0, _) => 0.0,
            (h, r) => (1.0 - r as f64 / h as f64).exp(),
        }
    }

    fn verbose(&self) -> String {
        let [p1, p2, p3, p4] = self.precisions();
        let penalty = self.brevity_penalty();
        let (hypothesis, reference) = (self.hypothesis, self.reference);
        let ratio = match reference {
            0 => 0.0,
            _ => hypothesis as f64 / reference as f64,
        };
        format!(
            "{p1:.1}/{p2:.1}/{p3:.1}/{p4:.1} (BP = {penalty:.3} ratio = {ratio:.3} \
             hyp_len = {hypothesis} ref_len = {reference})"
        )
    }
}

impl Vocabulary {
    fn tokens(&mut self, line: &str) -> Vec<u32> {
        let line = tokenize(line);
        let words = line.split(' ').filter(|word| !word.is_empty());
        words.map(|word| self.id(word)).collect()
    }

    fn id(&mut self, word: &str) -> u32 {
        if let Some(&id) = self.0.get(word) {
            return id;
        }
        let id = self.0.len() as u32 + 1;
        self.0.insert(word.to_owned(), id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::golden;
    use super::*;

    #[test]
    fn bleu_equals_sacrebleu() {
        for corpus in golden().corpora {
            let name = &corpus.name;
            let score = bleu(&corpus.hypotheses, &corpus.references).unwrap();
            let error = (score.score - corpus.bleu).abs();
            assert!(error < 1e-9, "{name}: {score}, not {}", corpus.bleu);
            assert_eq!(score.to_string(), corpus.bleu_text, "{name}");
        }
    }

    #[test]
    fn lengths_brevity_penalty_and_precisions_equal_sacrebleu() {
        for corpus in golden().corpora {
            let name = &corpus.name;
            let counts = corpus_counts(&corpus.hypotheses, &corpus.references).unwrap();
            assert_eq!(counts.hypothesis, corpus.sys_len, "{name}");
            assert_eq!(counts.reference, corpus.ref_len, "{name}");
            assert!((counts.brevity_penalty() - corpus.bp).abs() < 1e-9);
            for (ours, theirs) in counts.precisions().iter().zip(corpus.precisions) {
                assert!((ours - theirs).abs() < 1e-9, "{name}: {ours}, not {theirs}");
            }
        }
    }

    #[test]
    fn the_order_of_segments_does_not_matter() {
        let (hypotheses, references) = (["a b c d e", "f g h i"], ["a b c d x", "f g h i j"]);
        let reversed = |mut lines: [&'static str; 2]| {
            lines.reverse();
            lines
        };
        assert_eq!(
            bleu(&hypotheses, &references),
            bleu(&reversed(hypotheses), &reversed(references))
        );
    }
}
