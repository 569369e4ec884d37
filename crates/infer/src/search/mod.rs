//! A source sentence to its likeliest translations: the one loop that every strategy shares.
//!
//! After every step of the model, the rules of a sentence change the scores of its rows (the hypotheses it
//! follows), and its strategy chooses which rows continue, and with which tokens:
//!
//! ```text
//! step -> logits of each row -> rules -> strategy -> rows and tokens of the next step
//! ```
//!
//! r rows of all sentences, w words of the target vocabulary.

mod beam;
mod branch;
mod constrained;
mod coverage;
mod greedy;
mod row;
mod rules;
mod sample;
mod spelling;
mod term;
#[cfg(test)]
mod tests;

use std::ops::Range;

use attend_batch::Source;
use attend_model::{DecoderState, KeptRows, Pass, Step};
use rayon::prelude::*;

pub(crate) use beam::Beam;
pub(crate) use branch::Branch;
pub(crate) use constrained::Constrained;
use coverage::{Attention, Coverage};
pub(crate) use greedy::Greedy;
use row::{Logits, Row};
pub(crate) use rules::{
    EndAtLimit, Forbid, Forbidden, ForcedPrefix, MinLength, NoRepeatNgram, RepetitionPenalty, Rule,
};
pub(crate) use sample::{Filter, Sample};
pub(crate) use spelling::Spelling;
pub(crate) use term::{Term, Terms};

use crate::{EarlyStopping, Error, LengthMeasure, Observer, Result};

/// A translation that was found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    /// All tokens, `</s>` included.
    pub(crate) tokens: Vec<u32>,
    /// The sum of their log-probabilities, divided by measure(length)^penalty; with a coverage penalty, plus that.
    pub(crate) score: f64,
}

/// When the search of a sentence ends, and how translations are ranked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Criteria {
    pub(crate) eos: u32,
    pub(crate) length_penalty: f32,
    pub(crate) length_measure: LengthMeasure,
    pub(crate) early_stopping: EarlyStopping,
    /// How much it counts against a hypothesis of a beam that has ended if it did not attend to all of the source.
    pub(crate) coverage_penalty: f32,
    /// The most tokens, `</s>` included. A hypothesis that reaches it ends as it is.
    pub(crate) limit: usize,
}

impl Criteria {
    pub(crate) fn score(&self, sum: f64, length: usize) -> f64 {
        sum / self
            .length_measure
            .of(length)
            .powf(f64::from(self.length_penalty))
    }

    fn found(&self, tokens: Vec<u32>, sum: f64) -> Found {
        let score = self.score(sum, tokens.len());
        Found { tokens, score }
    }

    /// The same with the penalty for what is not covered.
    fn found_with(&self, tokens: Vec<u32>, sum: f64, coverage: &Coverage) -> Found {
        let found = self.found(tokens, sum);
        let penalty = f64::from(self.coverage_penalty) * coverage.log();
        Found {
            score: found.score + penalty,
            ..found
        }
    }
}

/// The search of one sentence: what may change its scores, and what chooses.
pub(crate) struct Search {
    pub(crate) rules: Vec<Box<dyn Rule>>,
    pub(crate) strategy: Box<dyn Strategy>,
}

/// Chooses which hypotheses of a sentence continue. It begins with one, which has read the start token.
pub(crate) trait Strategy: Send {
    /// The tokens of a row's hypothesis so far.
    fn tokens(&self, row: usize) -> &[u32];

    /// Whether it needs the attention of each step. To compute that takes time.
    fn reads_attention(&self) -> bool {
        false
    }

    /// Chooses, given the scores of each row's next word.
    fn advance(&mut self, rows: &[Row]) -> Next;

    /// The translations found, best first, at least one. Called once, at the end.
    fn finish(&mut self) -> Vec<Found>;
}

/// What happens to the rows of a sentence.
pub(crate) enum Next {
    /// The search is over.
    Done,
    /// The rows that continue, each with its next token. A row may continue more than once.
    Rows(Vec<(usize, u32)>),
}

/// Sentences that are encoded together.
pub(crate) struct Group {
    pub(crate) source: Source,
    /// One for each sentence, with a number that says which it is.
    pub(crate) searches: Vec<(usize, Search)>,
}

/// A sentence whose search is not over.
struct Active {
    number: usize,
    source_tokens: usize,
    search: Search,
    /// Its rows of the model's state.
    rows: Range<usize>,
}

impl Active {
    fn advance(&mut self, logits: Logits, attention: Option<&Attention>) -> Result<Next> {
        let Search { rules, strategy } = &mut self.search;
        let rows = self.rows.clone().enumerate();
        let rows = rows.map(|(i, row)| {
            let attention = attention.map_or(&[][..], |a| a.row(row, self.source_tokens));
            Ok(logits.row(row, strategy.tokens(i), rules)?.with(attention))
        });
        let rows = rows.collect::<Result<Vec<Row>>>()?;
        Ok(strategy.advance(&rows))
    }
}

/// Translates the sentences of all groups, and gives `done` what each search finds, by the number of its sentence.
///
/// Sentences that are done leave the batch, and the next group enters it as soon as the sources of all have at most
/// `room` tokens, if the model can step rows of different lengths together. Otherwise it waits until all are
/// done. The observer may cancel the search before any step.
pub(crate) fn search(
    model: &dyn Step,
    groups: impl IntoIterator<Item = Result<Group>>,
    room: usize,
    pass: &Pass,
    observer: &dyn Observer,
    mut done: impl FnMut(usize, Vec<Found>) -> Result<()>,
) -> Result<()> {
    let mut groups = groups.into_iter().peekable();
    let mut active: Vec<Active> = Vec::new();
    let mut last: Vec<u32> = Vec::new(); // (r)
    let mut state: Option<Box<dyn DecoderState + '_>> = None;
    loop {
        while let Some(group) = groups.next_if(|group| {
            let waiting = group
                .as_ref()
                .map_or(0, |group| group.source.segments().rows());
            let tokens: usize = active.iter().map(|sentence| sentence.source_tokens).sum();
            active.is_empty() || model.admits(pass) && tokens + waiting <= room
        }) {
            let Group { source, searches } = group?;
            let memory = model.encode(&source, pass)?;
            match &mut state {
                Some(state) if !active.is_empty() => state.admit(&memory)?,
                _ => state = Some(model.start(&memory, 1, pass)?),
            }
            for ((number, search), range) in searches.into_iter().zip(source.segments().ranges()) {
                active.push(Active {
                    number,
                    source_tokens: range.len(),
                    search,
                    rows: last.len()..last.len() + 1,
                });
                last.push(model.start_token());
            }
        }
        let Some(state) = state.as_mut().filter(|_| !active.is_empty()) else {
            return Ok(());
        };
        if observer.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let mut maps = Vec::new();
        let mut strategies = active.iter().map(|sentence| &sentence.search.strategy);
        let attends = strategies.any(|strategy| strategy.reads_attention());
        let logits = state.step(&last, attends.then_some(&mut maps))?; // (r, w)
        let attention = attends.then(|| Attention::of(&maps)).transpose()?;
        let answers: Vec<Next> = Logits::lend(&logits, |logits| {
            let advance = |sentence: &mut Active| sentence.advance(logits, attention.as_ref());
            active.par_iter_mut().map(advance).collect()
        })?;

        last.clear();
        let mut kept = Vec::new();
        let mut still_active = Vec::new();
        for (place, (mut sentence, next)) in active.into_iter().zip(answers).enumerate() {
            match next {
                Next::Done => done(sentence.number, sentence.search.strategy.finish())?,
                Next::Rows(next) => {
                    let rows = next.iter().map(|(row, _)| sentence.rows.start + row);
                    kept.push(KeptRows {
                        sentence: place,
                        rows: rows.collect(),
                    });
                    sentence.rows = last.len()..last.len() + next.len();
                    last.extend(next.iter().map(|(_, token)| token));
                    still_active.push(sentence);
                }
            }
        }
        active = still_active;
        if !active.is_empty() {
            state.select(&kept)?;
        }
    }
}
