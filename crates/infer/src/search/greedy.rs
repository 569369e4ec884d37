use super::row::{Row, likeliest};
use super::{Criteria, Found, Next, Strategy};

/// The likeliest token, then the likeliest token after it, until `</s>`.
pub(crate) struct Greedy {
    criteria: Criteria,
    tokens: Vec<u32>,
    sum: f64,
}

impl Greedy {
    pub(crate) fn new(criteria: Criteria) -> Self {
        Self {
            criteria,
            tokens: Vec::new(),
            sum: 0.0,
        }
    }
}

impl Strategy for Greedy {
    fn tokens(&self, _: usize) -> &[u32] {
        &self.tokens
    }

    fn advance(&mut self, rows: &[Row]) -> Next {
        let Criteria { eos, limit, .. } = self.criteria;
        // Where every word is forbidden, the translation ends.
        let best = likeliest(1, rows, [self.sum]).first().copied();
        let token = best.map_or(eos, |best| best.token);
        self.sum = best.map_or(self.sum, |best| best.sum);
        self.tokens.push(token);
        if token == eos || self.tokens.len() >= limit {
            Next::Done
        } else {
            Next::Rows(vec![(0, token)])
        }
    }

    fn finish(&mut self) -> Vec<Found> {
        let tokens = std::mem::take(&mut self.tokens);
        vec![self.criteria.found(tokens, self.sum)]
    }
}
