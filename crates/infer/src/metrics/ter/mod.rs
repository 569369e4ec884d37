//! TER: the edits that make the hypothesis the reference, of which one can shift several words, per word of the
//! reference (Snover et al. 2006, "A Study of Translation Edit Rate with Targeted Human Annotation").
//!
//! Which shifts are tried, and where the edit distance is computed, is what Tercom and sacreBLEU do.

mod distance;
mod shift;

use super::metric::{Metric, Real, Resampled};
use super::ngrams::WordIds;
use super::text::words;
use shift::edits;

/// Case-insensitive, words separated by whitespace, punctuation kept: the defaults of sacreBLEU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ter;

impl Metric for Ter {
    fn name(&self) -> &'static str {
        "TER"
    }

    fn settings(&self) -> String {
        "case:lc|tok:tercom|norm:no|punct:yes|asian:no".into()
    }

    fn width(&self) -> usize {
        2
    }

    /// The edits to the closest reference, and the mean length of the references.
    fn statistics(&self, hypothesis: &str, references: &[&str]) -> Vec<f64> {
        let hypothesis = hypothesis.to_lowercase();
        let references = references.iter().map(|line| line.to_lowercase());
        let references: Vec<String> = references.collect();
        let mut ids = WordIds::default();
        let hypothesis = ids.of(words(&hypothesis));
        let (mut fewest, mut length) = (None, 0);
        for reference in &references {
            let reference = ids.of(words(reference));
            let edits = edits(&hypothesis, &reference);
            fewest = Some(fewest.map_or(edits, |fewest: u32| fewest.min(edits)));
            length += reference.len();
        }
        let mean = length as f64 / references.len().max(1) as f64;
        vec![f64::from(fewest.unwrap_or(0)), mean]
    }

    fn score(&self, sums: &[f64]) -> f64 {
        rate(sums).unwrap_or_else(|| without_references(sums[0]))
    }

    fn score_resampled(&self, sums: &[f32]) -> Resampled {
        match rate(sums) {
            Some(rate) => Resampled::Single(rate),
            None => Resampled::Double(without_references(f64::from(sums[0]))),
        }
    }

    fn lower_is_better(&self) -> bool {
        true
    }
}

/// Edits per hundred words of the references, if these have any.
fn rate<F: Real>(sums: &[F]) -> Option<F> {
    let (edits, length) = (sums[0], sums[1]);
    (length > F::from(0)).then(|| F::from(100) * (edits / length))
}

fn without_references(edits: f64) -> f64 {
    if edits > 0.0 { 100.0 } else { 0.0 }
}
