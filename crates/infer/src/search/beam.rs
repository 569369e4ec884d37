use super::row::{Candidate, Row, likeliest};
use super::{Found, Last, Next, Rules, Strategy};

/// Beam search as Hugging Face's `generate` does it, with `early_stopping` off.
pub(crate) struct Beam {
    rules: Rules,
    width: usize,
    length: usize,
    /// Hypotheses that go on, one for each row, likeliest first.
    running: Vec<Running>,
    /// Hypotheses that have ended, at most `width`, best score first.
    finished: Vec<Found>,
}

#[derive(Clone, Default)]
struct Running {
    tokens: Vec<u32>,
    sum: f64,
}

impl Beam {
    pub(crate) fn new(width: usize, rules: Rules) -> Self {
        Self {
            rules,
            width,
            length: 0,
            running: vec![Running::default()],
            finished: Vec::with_capacity(width + 1),
        }
    }

    /// Enough that `width` of them do not end, since each row ends in one way only and just the
    /// best `width` candidates may end.
    fn candidates(&self, rows: &[Row]) -> Vec<Candidate> {
        let sums = self.running.iter().map(|hypothesis| hypothesis.sum);
        match self.length >= self.rules.limit && self.rules.last == Last::Eos {
            true => (0..)
                .zip(sums)
                .map(|(row, sum)| Candidate {
                    row,
                    token: self.rules.eos,
                    sum,
                })
                .collect(),
            false => likeliest(2 * self.width, rows, sums),
        }
    }

    fn extended(&self, candidate: &Candidate) -> Vec<u32> {
        let mut tokens = self.running[candidate.row].tokens.clone();
        tokens.push(candidate.token);
        tokens
    }

    /// Keeps the `width` best; of equals, those that came first.
    fn end(&mut self, candidate: &Candidate) {
        let found = self.rules.found(self.extended(candidate), candidate.sum);
        let place = self.finished.partition_point(|f| f.score >= found.score);
        self.finished.insert(place, found);
        self.finished.truncate(self.width);
    }

    /// Whether the best running hypothesis, were it to end as it stands, would not beat the worst
    /// finished one. It may yet, given time, but that is where Hugging Face stops.
    fn is_over(&self) -> bool {
        let Some(best) = self.running.first() else {
            return true; // a vocabulary so small that everything has ended
        };
        let best = self.rules.score(best.sum, self.length);
        self.finished.len() == self.width && self.finished.iter().all(|f| best <= f.score)
    }
}

impl Strategy for Beam {
    fn advance(&mut self, rows: &[Row]) -> Next {
        self.length += 1;
        let at_limit = self.length >= self.rules.limit;
        let candidates = self.candidates(rows);
        // An end that is not among the best is lost, else short translations would fill the list.
        for candidate in candidates.iter().take(self.width) {
            if at_limit || candidate.token == self.rules.eos {
                self.end(candidate);
            }
        }
        if at_limit {
            return Next::Done;
        }
        let open = candidates.iter().filter(|c| c.token != self.rules.eos);
        let open: Vec<&Candidate> = open.take(self.width).collect();
        let running = open.iter().map(|candidate| Running {
            tokens: self.extended(candidate),
            sum: candidate.sum,
        });
        self.running = running.collect();
        match self.is_over() {
            true => Next::Done,
            false => Next::Rows(open.iter().map(|c| (c.row, c.token)).collect()),
        }
    }

    fn finish(self) -> Vec<Found> {
        self.finished
    }
}
