//! A source sentence to its likeliest translations: the one loop that every strategy shares.
//!
//! A strategy is the search of one sentence. After every step of the model it reads the logits of
//! its rows (the hypotheses it follows) and answers which of them go on, and with which tokens.
//!
//! r rows of all sentences, w words of the target vocabulary.

mod beam;
#[cfg(test)]
mod golden;
mod greedy;
mod row;

use std::ops::Range;

use attend_model::{Packed, Pass, Seq2Seq};
use rayon::prelude::*;

pub(crate) use beam::Beam;
pub(crate) use greedy::Greedy;
use row::{Logits, Row};

use crate::{LengthMeasure, Result};

/// A translation that was found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    /// All tokens, `</s>` included.
    pub(crate) tokens: Vec<u32>,
    /// The sum of their log-probabilities, divided by measure(length)^penalty.
    pub(crate) score: f64,
}

/// What the search of a sentence keeps to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) eos: u32,
    pub(crate) length_penalty: f32,
    pub(crate) length_measure: LengthMeasure,
    /// The most tokens, `</s>` included.
    pub(crate) limit: usize,
    pub(crate) last: Last,
}

/// What the last token that `limit` allows may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    /// Only `</s>`, which then is certain and costs nothing: MarianMT's `forced_eos_token_id`.
    Eos,
    /// Any token: what is still going is taken as it is.
    #[cfg_attr(not(test), expect(dead_code))] // Hugging Face's default, to compare with
    Any,
}

/// The search of one sentence. It begins with one row, which has read the start token.
pub(crate) trait Strategy: Send {
    /// What to do, given what the model says of each row's next word.
    fn advance(&mut self, rows: &[Row]) -> Next;

    /// Best first, at least one.
    fn finish(self) -> Vec<Found>;
}

/// What happens to the rows of a sentence.
pub(crate) enum Next {
    /// The search is over.
    Done,
    /// The rows that go on, each with its next token. A row may go on more than once.
    Rows(Vec<(usize, u32)>),
}

impl Rules {
    fn score(&self, sum: f64, length: usize) -> f64 {
        sum / self
            .length_measure
            .of(length)
            .powf(f64::from(self.length_penalty))
    }

    fn found(&self, tokens: Vec<u32>, sum: f64) -> Found {
        let score = self.score(sum, tokens.len());
        Found { tokens, score }
    }
}

/// A sentence whose search is not over.
struct Going<S> {
    sentence: usize,
    strategy: S,
    /// Its rows of the model's state.
    rows: Range<usize>,
}

/// The translations of every sentence, as its strategy finds them. Sentences that are done leave
/// the batch.
pub(crate) fn search<S: Strategy>(
    model: &dyn Seq2Seq,
    source: &Packed,
    strategies: Vec<S>,
    pass: &Pass,
) -> Result<Vec<Vec<Found>>> {
    let sentences = source.segments.count();
    assert_eq!(sentences, strategies.len(), "one strategy per sentence");
    let mut found = vec![Vec::new(); sentences];
    let mut going: Vec<Going<S>> = (0..)
        .zip(strategies)
        .map(|(sentence, strategy)| Going {
            sentence,
            strategy,
            rows: sentence..sentence + 1,
        })
        .collect();
    let mut last = vec![model.start_token(); sentences]; // (r)
    let mut state = model.start(&model.encode(source, pass)?, 1, pass)?;
    while !going.is_empty() {
        let logits = model.step(&mut state, &last, pass)?; // (r, w)
        let answers: Vec<Next> = Logits::read(&logits, |logits| {
            let advance =
                |it: &mut Going<S>| Ok(it.strategy.advance(&logits.rows(it.rows.clone())?));
            going.par_iter_mut().map(advance).collect()
        })?;

        last.clear();
        let mut kept = Vec::new();
        let mut still = Vec::new();
        for (place, (mut it, next)) in going.into_iter().zip(answers).enumerate() {
            match next {
                Next::Done => found[it.sentence] = it.strategy.finish(),
                Next::Rows(next) => {
                    let rows = next.iter().map(|(row, _)| it.rows.start + row);
                    kept.push((place, rows.collect::<Vec<_>>()));
                    it.rows = last.len()..last.len() + next.len();
                    last.extend(next.iter().map(|(_, token)| token));
                    still.push(it);
                }
            }
        }
        going = still;
        if !going.is_empty() {
            state.select(&kept)?;
        }
    }
    Ok(found)
}
