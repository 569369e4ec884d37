use std::collections::HashSet;

use super::row::{Candidate, Row, likeliest};
use super::term::{Standing, Terms};
use super::{Coverage, Criteria, Found, Next, Strategy};
use crate::EarlyStopping;
use crate::words::joins;

/// Beam search for translations that have given terms, with dynamic beam allocation (Post and Vilar 2018): of the
/// hypotheses with as many tokens of the terms, only those compete with each other, and each group has a share of
/// the beam. Whether a term is there is read in the text, as whole words, however it was written.
///
/// A hypothesis ends only with all terms, or at the limit. `early_stopping = true` counts as `false`: the first
/// translations that end are those that had the terms placed soonest, not best.
pub(crate) struct Constrained {
    criteria: Criteria,
    terms: Terms,
    width: usize,
    /// How many translations are wanted.
    wanted: usize,
    length: usize,
    /// Hypotheses that continue, one for each row.
    running: Vec<Running>,
    /// Translations with all terms, at most `wanted`, best score first.
    finished: Vec<Found>,
    /// Translations that ended at the limit with fewer terms, and how many these are.
    partial: Vec<(usize, Found)>,
}

#[derive(Clone, Default)]
struct Running {
    tokens: Vec<u32>,
    sum: f64,
    standing: Standing,
    coverage: Coverage,
}

impl Constrained {
    /// A greedy search has no room for terms.
    const LEAST_WIDTH: usize = 4;
    /// The beam is at least this much wider than the terms have tokens, so that each group has a place in it.
    const MARGIN: usize = 2;
    /// But not wider than this for that reason.
    const MOST_WIDTH: usize = 64;

    /// How many hypotheses are followed for terms of this many tokens in all.
    pub(crate) fn width(beam: usize, tokens: usize) -> usize {
        let room = (tokens + Self::MARGIN).clamp(Self::LEAST_WIDTH, Self::MOST_WIDTH);
        beam.max(room)
    }

    pub(crate) fn new(beam: usize, terms: Terms, criteria: Criteria) -> Self {
        let first = Running {
            standing: terms.standing(&[]),
            ..Running::default()
        };
        Self {
            width: Self::width(beam, terms.tokens()),
            wanted: beam.max(1),
            length: 0,
            running: vec![first],
            finished: Vec::new(),
            partial: Vec::new(),
            criteria,
            terms,
        }
    }

    /// The likeliest continuations of all, those of each row, and those that a row needs to have its terms.
    fn candidates(&self, rows: &[Row]) -> Vec<Candidate> {
        let sums = self.running.iter().map(|hypothesis| hypothesis.sum);
        let mut candidates = likeliest(2 * self.width, rows, sums);
        for (row, hypothesis) in self.running.iter().enumerate() {
            let own = likeliest(2, std::slice::from_ref(&rows[row]), [hypothesis.sum]);
            candidates.extend(own.into_iter().map(|own| Candidate { row, ..own }));
            let mut tokens = hypothesis.standing.wanted.clone();
            if hypothesis.standing.open {
                tokens.extend(self.new_word(&hypothesis.tokens, &rows[row]));
            }
            for token in tokens {
                let sum = hypothesis.sum + rows[row].log_probability(token);
                if sum.is_finite() {
                    candidates.push(Candidate { row, token, sum });
                }
            }
        }
        let mut seen = HashSet::new();
        candidates.retain(|candidate| seen.insert((candidate.row, candidate.token)));
        candidates.sort_by(|a, b| b.sum.total_cmp(&a.sum));
        candidates
    }

    /// The likeliest token that does not go on with the last word.
    fn new_word(&self, tokens: &[u32], row: &Row) -> Option<u32> {
        let last = self.terms.spelling.text(tokens).chars().next_back()?;
        let words = (0..).zip(self.terms.spelling.words());
        let others = words.filter(|(token, word)| {
            let first = word.chars().next();
            *token == self.criteria.eos || first.is_some_and(|first| !joins(last, first))
        });
        let logit = |token: u32| row.logits()[token as usize];
        let best = others.map(|(token, _)| token);
        best.max_by(|&a, &b| logit(a).total_cmp(&logit(b)).then(b.cmp(&a)))
    }

    fn extended(&self, candidate: &Candidate, rows: &[Row]) -> Running {
        let before = &self.running[candidate.row];
        let tokens = [&*before.tokens, &[candidate.token]].concat();
        let standing = if candidate.token == self.criteria.eos {
            before.standing.clone()
        } else {
            self.terms.standing(&tokens)
        };
        Running {
            standing,
            coverage: before.coverage.plus(rows[candidate.row].attention()),
            sum: candidate.sum,
            tokens,
        }
    }

    fn has_all(&self, hypothesis: &Running) -> bool {
        hypothesis.standing.met == self.terms.terms.len()
    }

    fn end(&mut self, hypothesis: Running) {
        let met = hypothesis.standing.met;
        let all = self.has_all(&hypothesis);
        let Running {
            tokens,
            sum,
            coverage,
            ..
        } = hypothesis;
        let found = self.criteria.found_with(tokens, sum, &coverage);
        if !all {
            self.partial.push((met, found));
            return;
        }
        let place = self.finished.partition_point(|f| f.score >= found.score);
        self.finished.insert(place, found);
        self.finished.truncate(self.wanted);
    }

    /// Whether as many translations as wanted have ended, and no running hypothesis would rank higher, if it ended
    /// with all terms. One without them cannot end, and gets worse until it has them.
    fn is_over(&self) -> bool {
        let Some(worst) = self.finished.last() else {
            return self.running.is_empty();
        };
        let criteria = &self.criteria;
        let never = criteria.early_stopping == EarlyStopping::Never;
        let length = match never && criteria.length_penalty > 0.0 {
            true => criteria.limit,
            false => self.length,
        };
        let rank = |hypothesis: &Running| criteria.score(hypothesis.sum, length);
        self.finished.len() >= self.wanted && self.running.iter().all(|r| rank(r) <= worst.score)
    }
}

impl Strategy for Constrained {
    fn tokens(&self, row: usize) -> &[u32] {
        &self.running[row].tokens
    }

    fn reads_attention(&self) -> bool {
        self.criteria.coverage_penalty != 0.0
    }

    fn advance(&mut self, rows: &[Row]) -> Next {
        self.length += 1;
        let at_limit = self.length >= self.criteria.limit;
        let eos = self.criteria.eos;
        let candidates = self.candidates(rows);
        let extended = candidates.iter().map(|candidate| {
            let hypothesis = self.extended(candidate, rows);
            (candidate.row, candidate.token, hypothesis)
        });
        // Ends without all terms are left for the limit.
        let allowed =
            |hypothesis: &Running, token| at_limit || token != eos || self.has_all(hypothesis);
        let extended = extended.filter(|(_, token, hypothesis)| allowed(hypothesis, *token));
        let extended = in_turns(extended.collect(), |(.., hypothesis)| {
            hypothesis.standing.placed
        });
        if extended.is_empty() {
            // Where rules forbid every word of every row, the rows end as they are.
            for mut hypothesis in std::mem::take(&mut self.running) {
                hypothesis.tokens.push(eos);
                self.end(hypothesis);
            }
            return Next::Done;
        }
        self.running.clear();
        let mut next = Vec::new();
        for (rank, (row, token, hypothesis)) in extended.into_iter().enumerate() {
            if at_limit || token == eos {
                if rank < self.width {
                    self.end(hypothesis);
                }
            } else if next.len() < self.width {
                next.push((row, token));
                self.running.push(hypothesis);
            }
        }
        if at_limit || self.running.is_empty() || self.is_over() {
            Next::Done
        } else {
            Next::Rows(next)
        }
    }

    /// Those with all terms; if there are none, those with the most.
    fn finish(&mut self) -> Vec<Found> {
        if !self.finished.is_empty() {
            return std::mem::take(&mut self.finished);
        }
        let mut partial = std::mem::take(&mut self.partial);
        partial.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.score.total_cmp(&a.1.score)));
        partial.truncate(self.wanted);
        partial.into_iter().map(|(_, found)| found).collect()
    }
}

/// The same items, so that the first of each group come first, then the second ones: each time from the group of
/// the highest key to that of the lowest.
fn in_turns<T>(items: Vec<T>, key: impl Fn(&T) -> usize) -> Vec<T> {
    let mut counts: Vec<usize> = Vec::new();
    let mut turns: Vec<(usize, usize, T)> = Vec::with_capacity(items.len());
    for item in items {
        let key = key(&item);
        counts.resize(counts.len().max(key + 1), 0);
        turns.push((counts[key], key, item));
        counts[key] += 1;
    }
    turns.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
    turns.into_iter().map(|(.., item)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_take_turns_from_the_highest_to_the_lowest() {
        let items = vec![(0, 'a'), (0, 'b'), (2, 'c'), (0, 'd'), (2, 'e'), (1, 'f')];
        let turns: String = in_turns(items, |item| item.0).iter().map(|i| i.1).collect();
        assert_eq!(turns, "cfaebd");
    }
}
