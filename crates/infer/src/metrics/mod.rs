//! BLEU, chrF2, chrF2++ and TER of a corpus, confidence intervals and paired significance tests, equal to those of
//! sacreBLEU 2.6.0; and exact match, which it lacks.
//!
//! Scores with different tokenisation or smoothing are not comparable, so each score has a signature
//! with its settings (Post 2018, "A Call for Clarity in Reporting BLEU Scores"). The signature
//! differs from sacreBLEU's only in `version`.
//!
//! | file | contents |
//! |---|---|
//! | `metric` | the seam: statistics of a sentence, and the score of their sums |
//! | `bleu`, `chrf`, `ter/`, `exact` | the metrics |
//! | `tokenize/` | how BLEU splits lines into words |
//! | `tally` | the statistics of all sentences of a system |
//! | `resample` | bootstrap resampling and confidence intervals |
//! | `paired` | whether two systems differ: p-values |
//! | `score` | a score as text and JSON |
//! | `choice` | metrics by name |
//! | `ngrams`, `text` | n-grams that sequences share; whitespace and case |
//! | `pcg64`, `numpy` | the random numbers and the rounding of NumPy |

mod bleu;
mod choice;
mod chrf;
mod exact;
mod metric;
mod ngrams;
mod numpy;
mod paired;
mod pcg64;
mod resample;
mod score;
mod tally;
mod ter;
#[cfg(test)]
mod tests;
mod text;
mod tokenize;

pub use bleu::{Bleu, bleu};
pub use choice::{MetricChoice, MetricOptions};
pub use chrf::{Chrf, chrf};
pub use exact::Exact;
pub use metric::{Metric, Resampled};
pub use paired::{Randomization, bootstrap_p_value};
pub use resample::{Bootstrap, Interval, SEED, Samples};
pub use score::{Score, json, text};
pub use tally::Tally;
pub use ter::Ter;
pub use tokenize::Tokenizer;

/// Why a corpus cannot be scored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetricError {
    #[error(
        "cannot score {hypotheses} hypotheses against {references} references: \
         each hypothesis needs one reference, on the same line"
    )]
    Lengths {
        hypotheses: usize,
        references: usize,
    },
    #[error("cannot score an empty corpus: there are no hypotheses and no references")]
    Empty,
    #[error("cannot score without references")]
    NoReferences,
}
