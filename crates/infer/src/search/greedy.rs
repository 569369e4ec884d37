use super::row::{Row, likeliest};
use super::{Found, Last, Next, Rules, Strategy};

/// The likeliest token, then the likeliest token after it, until `</s>`.
pub(crate) struct Greedy {
    rules: Rules,
    tokens: Vec<u32>,
    sum: f64,
}

impl Greedy {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            rules,
            tokens: Vec::new(),
            sum: 0.0,
        }
    }
}

impl Strategy for Greedy {
    fn advance(&mut self, rows: &[Row]) -> Next {
        let Rules {
            eos, limit, last, ..
        } = self.rules;
        let at_limit = self.tokens.len() + 1 >= limit;
        let (token, sum) = match at_limit && last == Last::Eos {
            true => (eos, self.sum),
            false => {
                let best = likeliest(1, rows, [self.sum])[0];
                (best.token, best.sum)
            }
        };
        self.tokens.push(token);
        self.sum = sum;
        match at_limit || token == eos {
            true => Next::Done,
            false => Next::Rows(vec![(0, token)]),
        }
    }

    fn finish(self) -> Vec<Found> {
        vec![self.rules.found(self.tokens, self.sum)]
    }
}
