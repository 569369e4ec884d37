use super::row::{Row, likeliest};
use super::{Criteria, Found, Next, Strategy};

/// What could come next: the likeliest tokens after a prefix, each with the likeliest token after it, and so on to
/// `</s>`.
///
/// The score of a translation is the log-probability of its first token after the prefix.
pub(crate) struct Branch {
    criteria: Criteria,
    count: usize,
    /// Tokens that are given.
    prefix: usize,
    /// One for each row.
    running: Vec<Found>,
    finished: Vec<Found>,
}

impl Branch {
    /// `count` branches after so many tokens.
    pub(crate) fn new(count: usize, prefix: usize, criteria: Criteria) -> Self {
        Self {
            criteria,
            count,
            prefix,
            running: vec![Found {
                tokens: Vec::new(),
                score: 0.0,
            }],
            finished: Vec::new(),
        }
    }
}

impl Strategy for Branch {
    fn tokens(&self, row: usize) -> &[u32] {
        &self.running[row].tokens
    }

    fn advance(&mut self, rows: &[Row]) -> Next {
        let Criteria { eos, limit, .. } = self.criteria;
        let mut next = Vec::new();
        let running = std::mem::take(&mut self.running);
        for (i, hypothesis) in running.into_iter().enumerate() {
            let branches = hypothesis.tokens.len() == self.prefix;
            let count = if branches { self.count } else { 1 };
            let best = likeliest(count, &rows[i..=i], [0.0]);
            let mut choices: Vec<_> = best.iter().map(|it| (it.token, it.sum)).collect();
            if choices.is_empty() {
                choices.push((eos, f64::NEG_INFINITY)); // every word is forbidden
            }
            for (token, log_probability) in choices {
                let mut hypothesis = hypothesis.clone();
                hypothesis.tokens.push(token);
                if branches {
                    hypothesis.score = log_probability;
                }
                if token == eos || hypothesis.tokens.len() >= limit {
                    self.finished.push(hypothesis);
                } else {
                    next.push((i, token));
                    self.running.push(hypothesis);
                }
            }
        }
        match self.running.is_empty() {
            true => Next::Done,
            false => Next::Rows(next),
        }
    }

    fn finish(&mut self) -> Vec<Found> {
        let mut found = std::mem::take(&mut self.finished);
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        found
    }
}
