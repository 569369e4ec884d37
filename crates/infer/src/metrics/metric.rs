use std::ops::{Add, Div, Mul};

/// A metric of a corpus whose score is a function of sums over its sentences. Sums of parts of a corpus, of
/// resampled or of mixed ones give the scores of those.
pub trait Metric: Send + Sync {
    /// The name as in sacreBLEU, if it has the metric: `BLEU`, `chrF2`.
    fn name(&self) -> &'static str;

    /// The metric's part of the signature, between the number of references and the version.
    fn settings(&self) -> String;

    /// The number of statistics of a sentence.
    fn width(&self) -> usize;

    /// What a sentence adds to the sums.
    fn statistics(&self, hypothesis: &str, references: &[&str]) -> Vec<f64>;

    /// The score of these sums.
    fn score(&self, sums: &[f64]) -> f64;

    /// The same with the precision that sacreBLEU has when it resamples.
    fn score_resampled(&self, sums: &[f32]) -> Resampled;

    /// What sacreBLEU prints after the score.
    fn details(&self, _sums: &[f64]) -> String {
        String::new()
    }

    /// Whether a lower score is a better one.
    fn lower_is_better(&self) -> bool {
        false
    }
}

/// The score of a resampled corpus: in sacreBLEU a number of 32 bits or of 64, by the way it was computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Resampled {
    Single(f32),
    Double(f64),
}

/// f32 and f64, so that a formula is written once.
pub(super) trait Real:
    Copy
    + PartialOrd
    + From<u8>
    + Into<f64>
    + Add<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
{
}

impl Real for f32 {}
impl Real for f64 {}
