//! BLEU: the geometric mean of n-gram precisions, times a brevity penalty (Papineni et al. 2002,
//! "BLEU: a Method for Automatic Evaluation of Machine Translation").

use super::metric::{Metric, Real, Resampled};
use super::ngrams::{Ngrams, WordIds};
use super::text::{cased, words};
use super::{MetricError, Score, Tally, Tokenizer};

const ORDER: usize = 4;

/// BLEU with n up to 4 and exponential smoothing.
///
/// n-grams are counted over the whole corpus: the score is not an average over sentences. Smoothing
/// differs from the paper only if an order has no match: Chen and Cherry (2014), method 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bleu {
    pub lowercase: bool,
    pub tokenizer: Tokenizer,
}

/// Corpus BLEU with one reference, 13a tokenisation, case-sensitive.
pub fn bleu(
    hypotheses: &[impl AsRef<str>],
    references: &[impl AsRef<str>],
) -> Result<Score, MetricError> {
    Ok(Tally::new(&Bleu::default(), hypotheses, &[references])?.score())
}

/// The counts of a sentence, or their sum over a corpus: tokens of the hypothesis, tokens of the reference,
/// matches and totals of each order.
struct Sums<F> {
    hypothesis: F,
    reference: F,
    matches: [F; ORDER], // n-grams are at index n - 1
    totals: [F; ORDER],
}

impl Metric for Bleu {
    fn name(&self) -> &'static str {
        "BLEU"
    }

    fn settings(&self) -> String {
        let case = if self.lowercase { "lc" } else { "mixed" };
        format!(
            "case:{case}|eff:no|tok:{}|smooth:exp",
            self.tokenizer.name()
        )
    }

    fn width(&self) -> usize {
        2 + 2 * ORDER
    }

    fn statistics(&self, hypothesis: &str, references: &[&str]) -> Vec<f64> {
        let tokenize = |line: &str| self.tokenizer.tokenize(&cased(line, self.lowercase));
        let hypothesis = tokenize(hypothesis);
        let references: Vec<String> = references.iter().map(|line| tokenize(line)).collect();
        let mut ids = WordIds::default();
        let hypothesis = Ngrams::<ORDER>::new(&ids.of(words(&hypothesis)));
        let references = references
            .iter()
            .map(|line| Ngrams::new(&ids.of(words(line))));
        let references: Vec<_> = references.collect();

        // The closest length; the shorter one of two.
        let lengths = references.iter().map(Ngrams::len);
        let reference = lengths.min_by_key(|&length| (length.abs_diff(hypothesis.len()), length));
        let matches = hypothesis.shared(&references);
        let totals = std::array::from_fn::<_, ORDER, _>(|i| hypothesis.count(i + 1));
        let lengths = [hypothesis.len(), reference.unwrap_or(0)];
        let counts = lengths.into_iter().chain(matches).chain(totals);
        counts.map(|count| count as f64).collect()
    }

    fn score(&self, sums: &[f64]) -> f64 {
        Sums::new(sums).score()
    }

    fn score_resampled(&self, sums: &[f32]) -> Resampled {
        Resampled::Double(Sums::new(sums).score())
    }

    fn details(&self, sums: &[f64]) -> String {
        let sums = Sums::new(sums);
        let [p1, p2, p3, p4] = sums.precisions();
        let penalty = sums.brevity_penalty();
        let (hypothesis, reference) = (sums.hypothesis, sums.reference);
        let ratio = match reference {
            0.0 => 0.0,
            _ => hypothesis / reference,
        };
        format!(
            "{p1:.1}/{p2:.1}/{p3:.1}/{p4:.1} (BP = {penalty:.3} ratio = {ratio:.3} \
             hyp_len = {hypothesis:.0} ref_len = {reference:.0})"
        )
    }
}

impl<F: Real> Sums<F> {
    /// `sums` has the length that [`Metric::width`] says.
    fn new(sums: &[F]) -> Self {
        Self {
            hypothesis: sums[0],
            reference: sums[1],
            matches: std::array::from_fn(|i| sums[2 + i]),
            totals: std::array::from_fn(|i| sums[2 + ORDER + i]),
        }
    }

    /// BP · exp(Σ log pₙ / 4), §2.3.
    fn score(&self) -> f64 {
        let precisions = self.precisions().map(Into::into);
        if precisions.contains(&0.0) {
            return 0.0;
        }
        let logs: f64 = precisions.iter().map(|p| p.ln()).sum();
        self.brevity_penalty() * (logs / ORDER as f64).exp()
    }

    /// The precision of each order, in percent. If no order has a match, all are 0. If no hypothesis
    /// is long enough for an order, that order and all higher ones are 0. Otherwise the k-th order
    /// without a match counts as 1 / 2ᵏ matches.
    fn precisions(&self) -> [F; ORDER] {
        let (zero, hundred) = (F::from(0), F::from(100));
        let mut precisions = [zero; ORDER];
        if self.matches.iter().all(|&matches| matches == zero) {
            return precisions;
        }
        let mut halvings = F::from(1);
        for (i, precision) in precisions.iter_mut().enumerate() {
            let (matches, total) = (self.matches[i], self.totals[i]);
            if total == zero {
                break;
            }
            *precision = if matches == zero {
                halvings = halvings * F::from(2);
                hundred / (halvings * total)
            } else {
                hundred * matches / total
            };
        }
        precisions
    }

    fn brevity_penalty(&self) -> f64 {
        let (hypothesis, reference) = (self.hypothesis.into(), self.reference.into());
        if hypothesis >= reference {
            1.0
        } else if hypothesis == 0.0 {
            0.0
        } else {
            (1.0 - reference / hypothesis).exp()
        }
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
            let metric = Bleu::default();
            let tally = Tally::new(&metric, &corpus.hypotheses, &[&corpus.references]).unwrap();
            let sums = tally.sums();
            let sums = Sums::new(&sums);
            assert_eq!(sums.hypothesis, corpus.sys_len as f64, "{name}");
            assert_eq!(sums.reference, corpus.ref_len as f64, "{name}");
            assert!((sums.brevity_penalty() - corpus.bp).abs() < 1e-9);
            for (ours, theirs) in sums.precisions().iter().zip(corpus.precisions) {
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
