use super::row::{Candidate, Row, likeliest};
use super::{Coverage, Criteria, Found, Next, Strategy};
use crate::EarlyStopping;

/// Beam search as Hugging Face's `generate` does it, with each `early_stopping`. With `true`, this is also the
/// search of CTranslate2.
pub(crate) struct Beam {
    criteria: Criteria,
    width: usize,
    length: usize,
    /// Hypotheses that continue, one for each row, likeliest first.
    running: Vec<Running>,
    /// Hypotheses that have ended, at most `width`, best score first.
    finished: Vec<Found>,
}

#[derive(Clone, Default)]
struct Running {
    tokens: Vec<u32>,
    sum: f64,
    coverage: Coverage,
}

impl Beam {
    pub(crate) fn new(width: usize, criteria: Criteria) -> Self {
        Self {
            criteria,
            width,
            length: 0,
            running: vec![Running::default()],
            finished: Vec::with_capacity(width + 1),
        }
    }

    /// Enough that `width` of them do not end: each row ends in one way only, and only the best `width`
    /// candidates may end. Where rules forbid every word of every row, the rows end as they are.
    fn candidates(&self, rows: &[Row]) -> Vec<Candidate> {
        let sums = || self.running.iter().map(|hypothesis| hypothesis.sum);
        let candidates = likeliest(2 * self.width, rows, sums());
        if !candidates.is_empty() {
            return candidates;
        }
        let token = self.criteria.eos;
        let end = |(row, sum)| Candidate { row, token, sum };
        (0..).zip(sums()).map(end).collect()
    }

    fn extended(&self, candidate: &Candidate) -> Vec<u32> {
        let mut tokens = self.running[candidate.row].tokens.clone();
        tokens.push(candidate.token);
        tokens
    }

    fn coverage(&self, candidate: &Candidate, rows: &[Row]) -> Coverage {
        let before = &self.running[candidate.row].coverage;
        before.plus(rows[candidate.row].attention())
    }

    /// Keeps the `width` best; of equals, those that came first.
    fn end(&mut self, candidate: &Candidate, rows: &[Row]) {
        let (tokens, coverage) = (self.extended(candidate), self.coverage(candidate, rows));
        let found = self.criteria.found_with(tokens, candidate.sum, &coverage);
        let place = self.finished.partition_point(|f| f.score >= found.score);
        self.finished.insert(place, found);
        self.finished.truncate(self.width);
    }

    /// Whether `width` hypotheses have ended and, unless stopping early, the likeliest running one cannot beat
    /// the worst of these. What it can reach is what Hugging Face takes for it: its score if it ended now, although
    /// a longer continuation might still win; and if stopping early is never wanted, its score at the length that
    /// is best for it. It may still attend to all of the source.
    fn is_over(&self) -> bool {
        let Some(best) = self.running.first() else {
            return true; // a vocabulary so small that everything has ended
        };
        if self.finished.len() < self.width {
            return false;
        }
        let criteria = &self.criteria;
        let length = match criteria.early_stopping {
            EarlyStopping::Yes => return true,
            EarlyStopping::Never if criteria.length_penalty > 0.0 => criteria.limit,
            EarlyStopping::Never | EarlyStopping::No => self.length,
        };
        let best = criteria.score(best.sum, length);
        self.finished.iter().all(|found| best <= found.score)
    }
}

impl Strategy for Beam {
    fn tokens(&self, row: usize) -> &[u32] {
        &self.running[row].tokens
    }

    fn reads_attention(&self) -> bool {
        self.criteria.coverage_penalty != 0.0
    }

    fn advance(&mut self, rows: &[Row]) -> Next {
        self.length += 1;
        let at_limit = self.length >= self.criteria.limit;
        let candidates = self.candidates(rows);
        // An end that is not among the best `width` is dropped, else short translations would fill the list.
        for candidate in candidates.iter().take(self.width) {
            if at_limit || candidate.token == self.criteria.eos {
                self.end(candidate, rows);
            }
        }
        if at_limit {
            return Next::Done;
        }
        let open = candidates.iter().filter(|c| c.token != self.criteria.eos);
        let open: Vec<&Candidate> = open.take(self.width).collect();
        let running = open.iter().map(|candidate| Running {
            tokens: self.extended(candidate),
            sum: candidate.sum,
            coverage: self.coverage(candidate, rows),
        });
        self.running = running.collect();
        if self.is_over() {
            Next::Done
        } else {
            Next::Rows(open.iter().map(|c| (c.row, c.token)).collect())
        }
    }

    fn finish(&mut self) -> Vec<Found> {
        std::mem::take(&mut self.finished)
    }
}
