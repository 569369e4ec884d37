//! The three steps of attention as separate operations: scores of queries against keys, weights from
//! scores, and the weighted sum of values. Models that compute something between the steps use them.
//!
//! Scores and weights are `[n, s]`: a row per query of the packed batch, and a column per key of its own
//! sentence. s is the number of keys of the longest sentence; the other columns are zero.

mod additive;
mod kernels;
mod mix;
mod scores;
mod softmax;

use attend_batch::Segments;
use candle_core::{Device, Result, Tensor, bail};

pub use additive::{AdditiveActivation, additive_scores};
pub(crate) use additive::{score_row, score_row_backward};
pub(crate) use kernels::{inner_row, outer_row, weighted_row};
pub use mix::mix;
pub use scores::dot_scores;
pub(crate) use softmax::softmax_row;
pub use softmax::{Seen, softmax};

/// The queries of every sentence and the keys that they are scored against.
#[derive(Clone, Debug)]
pub struct Pairs {
    pub queries: Segments,
    pub keys: Segments,
}

impl Pairs {
    /// s, the number of columns of the scores.
    pub fn columns(&self) -> usize {
        self.keys.longest()
    }

    fn check(&self, query_rows: usize, key_rows: usize) -> Result<()> {
        let (queries, keys) = (&self.queries, &self.keys);
        if queries.count() != keys.count()
            || queries.rows() != query_rows
            || keys.rows() != key_rows
        {
            bail!(
                "{query_rows} queries and {key_rows} keys do not match the lengths of their sentences"
            );
        }
        Ok(())
    }

    /// `(b, 1, s)`: 1 where a sentence has a key, else 0.
    fn present(&self, device: &Device) -> Result<Tensor> {
        let (b, s) = (self.keys.count(), self.columns());
        let mut present = vec![0f32; b * s];
        for (row, &length) in present.chunks_exact_mut(s).zip(self.keys.lengths()) {
            row[..length].fill(1.0);
        }
        Tensor::from_vec(present, (b, 1, s), device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cases with one query per sentence, many queries, none, and sentences without keys.
    pub(super) fn pairs() -> Vec<Pairs> {
        let cases: [(&[usize], &[usize]); 4] = [
            (&[1], &[1]),
            (&[1, 1, 0, 1], &[5, 2, 7, 3]),
            (&[3, 0, 12, 1], &[2, 4, 9, 0]),
            (&[40, 30], &[35, 70]),
        ];
        cases
            .map(|(queries, keys)| Pairs {
                queries: Segments::packed(queries.iter().copied()),
                keys: Segments::packed(keys.iter().copied()),
            })
            .to_vec()
    }
}
