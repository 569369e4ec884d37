//! What the model predicts for the next word.

use std::borrow::Cow;

use attend_ops::log_sum_exp;
use candle_core::{DType, Device, Storage, Tensor};

use super::Rule;
use crate::{Error, Result};

/// The logits of a step, `[r, w]`, where the CPU can read them.
#[derive(Clone, Copy)]
pub(super) struct Logits<'a> {
    values: &'a [f32],
    words: usize,
}

/// The next word of one hypothesis: its logits after the rules, and what normalises them.
pub(crate) struct Row<'a> {
    logits: Cow<'a, [f32]>,
    log_sum: f64,
    /// What the hypothesis attends to in the source when it predicts the word; empty if nobody asks.
    attention: &'a [f32],
}

/// A row with its next token, and the log-probability of all its tokens then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) row: usize,
    pub(super) token: u32,
    pub(super) sum: f64,
}

impl Logits<'_> {
    /// Lends the logits to `f`, without a copy where they are on the CPU: they are the largest tensor of a step.
    pub(super) fn lend<T>(logits: &Tensor, f: impl FnOnce(Logits) -> Result<T>) -> Result<T> {
        let (rows, words) = logits.dims2()?;
        let logits = logits.to_device(&Device::Cpu)?.to_dtype(DType::F32)?;
        let logits = logits.contiguous()?;
        let (storage, layout) = logits.storage_and_layout();
        let Storage::Cpu(storage) = &*storage else {
            unreachable!("the tensor was moved to the CPU");
        };
        let start = layout.start_offset();
        let values = &storage.as_slice()?[start..start + rows * words];
        f(Logits { values, words })
    }

    /// One row, changed by the rules that apply to a hypothesis of these tokens.
    pub(super) fn row(
        &self,
        row: usize,
        tokens: &[u32],
        rules: &[Box<dyn Rule>],
    ) -> Result<Row<'_>> {
        let logits = &self.values[row * self.words..][..self.words];
        if let Some(word) = rules.iter().find_map(|rule| rule.forces(tokens)) {
            return Row::only(word, logits);
        }
        let applying: Vec<_> = rules.iter().filter(|rule| rule.applies(tokens)).collect();
        if applying.is_empty() {
            return Row::new(logits);
        }
        Row::new(logits)?; // an error if they are not finite
        let mut logits = logits.to_vec();
        let (pruning, changing): (Vec<_>, Vec<_>) =
            applying.into_iter().partition(|rule| rule.prunes());
        for rule in changing {
            rule.apply(tokens, &mut logits);
        }
        // Rules may forbid every word, but may not make one infinitely likely.
        let finite = |logit: &f32| *logit < f32::INFINITY;
        if !logits.iter().all(finite) {
            return Err(Error::NotANumber);
        }
        let log_sum = log_sum_exp(&logits);
        for rule in pruning {
            rule.apply(tokens, &mut logits);
        }
        Ok(Row {
            log_sum,
            logits: logits.into(),
            attention: &[],
        })
    }
}

impl<'a> Row<'a> {
    pub(super) fn new(logits: &'a [f32]) -> Result<Self> {
        let log_sum = log_sum_exp(logits);
        if !log_sum.is_finite() {
            return Err(Error::NotANumber);
        }
        Ok(Self {
            logits: logits.into(),
            log_sum,
            attention: &[],
        })
    }

    /// A row that leaves no choice. The word has the probability that it has among the others.
    fn only(word: u32, logits: &[f32]) -> Result<Self> {
        let mut row = Row {
            logits: vec![f32::NEG_INFINITY; logits.len()].into(),
            log_sum: Row::new(logits)?.log_sum,
            attention: &[],
        };
        if let Some(logit) = logits.get(word as usize) {
            row.logits.to_mut()[word as usize] = *logit;
        }
        Ok(row)
    }

    pub(super) fn with(self, attention: &'a [f32]) -> Self {
        Self { attention, ..self }
    }

    pub(super) fn attention(&self) -> &[f32] {
        self.attention
    }

    /// After the rules; `-inf` for a word that they forbid.
    pub(super) fn logits(&self) -> &[f32] {
        &self.logits
    }

    pub(super) fn log_probability(&self, word: u32) -> f64 {
        f64::from(self.logits[word as usize]) - self.log_sum
    }
}

/// The `count` likeliest continuations of the rows, best first; of equals the first row's first token. Forbidden
/// words are not among them, so that there may be fewer. `sums` are the log-probabilities of the rows so far.
pub(super) fn likeliest(
    count: usize,
    rows: &[Row],
    sums: impl IntoIterator<Item = f64>,
) -> Vec<Candidate> {
    let mut best: Vec<Candidate> = Vec::with_capacity(count + 1);
    let mut to_beat = f64::NEG_INFINITY;
    for (row, (scores, sum)) in rows.iter().zip(sums).enumerate() {
        let base = sum - scores.log_sum;
        for (token, &logit) in (0..).zip(&*scores.logits) {
            let sum = base + f64::from(logit);
            if logit == f32::NEG_INFINITY || sum <= to_beat && best.len() == count {
                continue;
            }
            let place = best.partition_point(|other| other.sum >= sum);
            best.insert(place, Candidate { row, token, sum });
            best.truncate(count);
            to_beat = best[best.len() - 1].sum;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_probabilities_sum_to_one_whatever_the_size_of_the_logits() -> Result<()> {
        for shift in [0.0, 1e4, -1e4] {
            let logits = [0.5, -1.0, 2.0, 0.0].map(|x: f32| x + shift);
            let row = Row::new(&logits)?;
            let all = likeliest(9, &[row], [0.0]);
            assert_eq!(all.len(), 4);
            let total: f64 = all.iter().map(|c| c.sum.exp()).sum();
            assert!((total - 1.0).abs() < 1e-3, "{total}");
        }
        Ok(())
    }

    #[test]
    fn of_equals_the_first_row_and_token_come_first() -> Result<()> {
        let (a, b) = ([1.0, 3.0, 3.0], [3.0, 3.0, 1.0]);
        let rows = [Row::new(&a)?, Row::new(&b)?];
        let order = |count| -> Vec<_> {
            let best = likeliest(count, &rows, [0.0, 0.0]);
            best.iter().map(|c| (c.row, c.token)).collect()
        };
        let all = [(0, 1), (0, 2), (1, 0), (1, 1), (0, 0), (1, 2)];
        for count in 1..=6 {
            assert_eq!(order(count), all[..count]);
        }
        Ok(())
    }

    #[test]
    fn scores_that_are_not_numbers_are_an_error() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        for (a, b) in [(nan, 0.0), (0.0, nan), (inf, 0.0), (-inf, -inf), (nan, nan)] {
            for words in [2, 16, 40] {
                let mut logits = vec![b; words];
                logits[words / 2] = a;
                let row = Row::new(&logits);
                assert!(matches!(row, Err(Error::NotANumber)), "{logits:?}");
            }
        }
        assert!(Row::new(&[-inf, 2.0]).is_ok()); // a word can be impossible
    }
}
