use rayon::prelude::*;

use super::metric::{Metric, Resampled};
use super::{MetricError, Score};

/// What the sentences of a system add to the sums of a metric: a table with a row for each sentence.
pub struct Tally<'m> {
    metric: &'m dyn Metric,
    references: usize,
    rows: Vec<f64>,
    /// The same in the precision in which sacreBLEU resamples.
    single: Vec<f32>,
}

impl<'m> Tally<'m> {
    /// Compares each hypothesis with the same line of every list of references.
    pub fn new<R: AsRef<str>>(
        metric: &'m dyn Metric,
        hypotheses: &[impl AsRef<str>],
        references: &[impl AsRef<[R]>],
    ) -> Result<Self, MetricError> {
        let hypotheses: Vec<&str> = hypotheses.iter().map(AsRef::as_ref).collect();
        let references: Vec<Vec<&str>> = references
            .iter()
            .map(|lines| lines.as_ref().iter().map(AsRef::as_ref).collect())
            .collect();
        check(hypotheses.len(), &references)?;
        let rows = hypotheses.par_iter().enumerate().map(|(line, hypothesis)| {
            let references: Vec<&str> = references.iter().map(|lines| lines[line]).collect();
            metric.statistics(hypothesis, &references)
        });
        let rows = rows.collect::<Vec<_>>().concat();
        Ok(Self {
            metric,
            references: references.len(),
            single: rows.iter().map(|&value| value as f32).collect(),
            rows,
        })
    }

    pub fn metric(&self) -> &'m dyn Metric {
        self.metric
    }

    /// The number of sentences.
    pub fn len(&self) -> usize {
        self.rows.len() / self.metric.width()
    }

    /// Never: a corpus without sentences is an error.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The score of the corpus, without a confidence interval.
    pub fn score(&self) -> Score {
        let sums = self.sums();
        Score::new(self.metric, self.references, &sums)
    }

    /// The score of one sentence, or of several as a corpus of their own. 0 without any.
    pub fn score_of(&self, lines: impl IntoIterator<Item = usize>) -> f64 {
        self.metric.score(&self.sums_of(lines))
    }

    pub(super) fn sums(&self) -> Vec<f64> {
        self.sums_of(0..self.len())
    }

    pub(super) fn sums_of(&self, lines: impl IntoIterator<Item = usize>) -> Vec<f64> {
        let mut sums = vec![0.0; self.metric.width()];
        for line in lines {
            for (sum, value) in sums.iter_mut().zip(self.row(line)) {
                *sum += value;
            }
        }
        sums
    }

    pub(super) fn row(&self, line: usize) -> &[f64] {
        let width = self.metric.width();
        &self.rows[line * width..][..width]
    }

    /// The score of these lines, summed one by one in 32 bits.
    pub(super) fn resampled(&self, lines: &[u32]) -> Resampled {
        let width = self.metric.width();
        let mut sums = vec![0f32; width];
        for &line in lines {
            let row = &self.single[line as usize * width..][..width];
            for (sum, value) in sums.iter_mut().zip(row) {
                *sum += value;
            }
        }
        self.metric.score_resampled(&sums)
    }
}

fn check(hypotheses: usize, references: &[Vec<&str>]) -> Result<(), MetricError> {
    if references.is_empty() {
        return Err(MetricError::NoReferences);
    }
    for lines in references {
        match (hypotheses, lines.len()) {
            (0, 0) => return Err(MetricError::Empty),
            (hypotheses, references) if hypotheses != references => {
                return Err(MetricError::Lengths {
                    hypotheses,
                    references,
                });
            }
            _ => {}
        }
    }
    Ok(())
}
