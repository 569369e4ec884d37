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
pub(crate) mod tests;

use std::iter::Peekable;
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
    /// How much of the room of a batch it takes: source tokens times hypotheses, as a rule.
    pub(crate) cost: usize,
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

impl Group {
    fn cost(&self) -> usize {
        self.searches.iter().map(|(_, search)| search.cost).sum()
    }
}

/// Gives sentences to a search, and takes what it finds.
pub(crate) trait Feed {
    /// The next group, if there is one that takes at most `free` of the room. Asked before every step, until it gives
    /// none. An error ends the search.
    fn next(&mut self, free: usize) -> Option<Result<Group>>;

    /// What was found for a sentence.
    fn done(&mut self, number: usize, found: Vec<Found>) -> Result<()>;

    /// Whether nobody waits for a sentence any more. Asked after every step; then the search forgets it.
    fn is_cancelled(&mut self, number: usize) -> bool {
        let _ = number;
        false
    }
}

/// Groups that are all known at the beginning, and a function that takes what is found.
pub(crate) struct Listed<'a, I: Iterator, D> {
    groups: Peekable<I>,
    /// May cancel the search before any step.
    observer: &'a dyn Observer,
    done: D,
}

impl<'a, I: Iterator<Item = Result<Group>>, D> Listed<'a, I, D> {
    pub(crate) fn new(
        groups: impl IntoIterator<IntoIter = I>,
        observer: &'a dyn Observer,
        done: D,
    ) -> Self {
        Self {
            groups: groups.into_iter().peekable(),
            observer,
            done,
        }
    }
}

impl<I, D> Feed for Listed<'_, I, D>
where
    I: Iterator<Item = Result<Group>>,
    D: FnMut(usize, Vec<Found>) -> Result<()>,
{
    fn next(&mut self, free: usize) -> Option<Result<Group>> {
        let is_over = free == usize::MAX && self.groups.peek().is_none();
        if !is_over && self.observer.is_cancelled() {
            return Some(Err(Error::Cancelled));
        }
        let fits = |group: &Result<Group>| group.as_ref().map_or(0, Group::cost) <= free;
        self.groups.next_if(fits)
    }

    fn done(&mut self, number: usize, found: Vec<Found>) -> Result<()> {
        (self.done)(number, found)
    }
}

/// A sentence whose search is not over.
struct Active {
    number: usize,
    /// What it can attend to.
    keys: usize,
    search: Search,
    /// Its rows of the model's state.
    rows: Range<usize>,
}

impl Active {
    fn advance(&mut self, logits: Logits, attention: Option<&Attention>) -> Result<Next> {
        let Search {
            rules, strategy, ..
        } = &mut self.search;
        let rows = self.rows.clone().enumerate();
        let rows = rows.map(|(i, row)| {
            let attention = attention.map_or(&[][..], |a| a.row(row, self.keys));
            Ok(logits.row(row, strategy.tokens(i), rules)?.with(attention))
        });
        let rows = rows.collect::<Result<Vec<Row>>>()?;
        Ok(strategy.advance(&rows))
    }
}

/// Translates the sentences of a feed, until it has none and all are done.
///
/// Sentences that are done leave the batch, and the next group enters it as soon as all together take at most
/// `room`, if the model can step rows of different lengths together. Otherwise it waits until all are done. A group that takes more than the room is a batch of its own.
pub(crate) fn search(
    model: &dyn Step,
    feed: &mut dyn Feed,
    room: usize,
    pass: &Pass,
) -> Result<()> {
    let mut active: Vec<Active> = Vec::new();
    let mut last: Vec<u32> = Vec::new(); // (r)
    let mut state: Option<Box<dyn DecoderState + '_>> = None;
    loop {
        while let Some(group) = feed.next(free(&active, room, model.admits(pass))) {
            let Group { source, searches } = group?;
            let memory = model.encode(&source, pass)?;
            match &mut state {
                Some(state) if !active.is_empty() => state.admit(&memory)?,
                _ => state = Some(model.start(&memory, 1, pass)?),
            }
            // What is attended to: of a picture, its regions.
            for ((number, search), range) in searches.into_iter().zip(memory.segments.ranges()) {
                active.push(Active {
                    number,
                    keys: range.len(),
                    search,
                    rows: last.len()..last.len() + 1,
                });
                last.push(model.start_token());
            }
        }
        let Some(state) = state.as_mut().filter(|_| !active.is_empty()) else {
            return Ok(());
        };
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
                Next::Done => feed.done(sentence.number, sentence.search.strategy.finish())?,
                Next::Rows(_) if feed.is_cancelled(sentence.number) => {}
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

/// How much of the room the next group may take.
fn free(active: &[Active], room: usize, admits: bool) -> usize {
    if active.is_empty() {
        return usize::MAX;
    }
    let taken: usize = active.iter().map(|sentence| sentence.search.cost).sum();
    if admits {
        room.saturating_sub(taken)
    } else {
        0
    }
}
