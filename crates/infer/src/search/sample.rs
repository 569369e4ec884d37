use attend_ops::random::{Key, Site};

use super::row::Row;
use super::{Criteria, Found, Next, Strategy};
use crate::Request;

/// Draws translations from the model's probabilities, each independent of the others.
///
/// A draw is a function of the seed, the numbers of the line, of its piece and of the sample, and the position in the
/// translation. So the same line has the same samples in any batch and order, on any number of threads.
pub(crate) struct Sample {
    criteria: Criteria,
    filter: Filter,
    /// Samples that have not ended, one for each row after the first step.
    running: Vec<Running>,
    finished: Vec<Found>,
}

/// What of the model's distribution is drawn from. In the order of Hugging Face's `generate`: the temperature, then
/// each filter on the renormalised remainder of the one before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filter {
    /// Logits are divided by it. Above 0.
    pub(crate) temperature: f32,
    /// The most words; 0 is any number.
    pub(crate) top_k: usize,
    /// The likeliest words that together have at least this probability; 1 is all of them.
    pub(crate) top_p: f32,
    /// The least probability, as a share of the likeliest word's.
    pub(crate) min_p: f32,
}

struct Running {
    key: Key,
    tokens: Vec<u32>,
    sum: f64,
}

impl Sample {
    /// What the draws for a request depend on.
    pub(crate) fn key(seed: u64, request: &Request) -> Key {
        // A text has fewer than 2^40 lines, so no two of its pieces have the same.
        let place = request.number.wrapping_add(request.piece << 40);
        Key::new(seed, place, Site::named("decode.sampling"))
    }

    /// `count` samples, whose draws depend on the key.
    pub(crate) fn new(count: usize, key: Key, filter: Filter, criteria: Criteria) -> Self {
        let running = (0..count as u64).map(|sample| Running {
            key: key.fork(sample),
            tokens: Vec::new(),
            sum: 0.0,
        });
        Self {
            criteria,
            filter,
            running: running.collect(),
            finished: Vec::with_capacity(count),
        }
    }
}

impl Strategy for Sample {
    fn tokens(&self, row: usize) -> &[u32] {
        &self.running[row].tokens
    }

    fn advance(&mut self, rows: &[Row]) -> Next {
        let Criteria { eos, limit, .. } = self.criteria;
        let laws: Vec<Law> = rows.iter().map(|row| self.filter.law(row)).collect();
        let mut next = Vec::new();
        for (i, mut sample) in std::mem::take(&mut self.running).into_iter().enumerate() {
            let row = i.min(rows.len() - 1); // all begin with the one row of the start token
            let uniform = sample.key.uniform(sample.tokens.len() as u64);
            // Where every word is forbidden, the translation ends.
            let token = laws[row].draw(uniform).unwrap_or(eos);
            let log_probability = rows[row].log_probability(token);
            if log_probability.is_finite() {
                sample.sum += log_probability;
            }
            sample.tokens.push(token);
            if token == eos || sample.tokens.len() >= limit {
                let found = self.criteria.found(sample.tokens, sample.sum);
                self.finished.push(found);
            } else {
                next.push((row, token));
                self.running.push(sample);
            }
        }
        if self.running.is_empty() {
            Next::Done
        } else {
            Next::Rows(next)
        }
    }

    fn finish(&mut self) -> Vec<Found> {
        let mut found = std::mem::take(&mut self.finished);
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        found
    }
}

/// The words that may be drawn, each with the sum of the weights up to it.
struct Law(Vec<(u32, f64)>);

impl Filter {
    fn law(&self, row: &Row) -> Law {
        let words = (0..).zip(row.logits());
        let words = words.filter(|(_, logit)| **logit > f32::NEG_INFINITY);
        let temperature = f64::from(self.temperature);
        let mut words: Vec<(u32, f64)> = words
            .map(|(word, logit)| (word, f64::from(*logit) / temperature))
            .collect();
        // Of equals, the first word comes first.
        let order = |a: &(u32, f64), b: &(u32, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if self.top_k > 0 && self.top_k < words.len() {
            words.select_nth_unstable_by(self.top_k, order);
            words.truncate(self.top_k);
        }
        let highest = words.iter().map(|word| word.1).fold(f64::MIN, f64::max);
        for word in &mut words {
            word.1 = (word.1 - highest).exp();
        }
        if self.top_p < 1.0 {
            words.sort_unstable_by(order);
            let total: f64 = words.iter().map(|word| word.1).sum();
            let enough = f64::from(self.top_p) * total;
            let mut sum = 0.0;
            let kept = words.iter().position(|word| {
                sum += word.1;
                sum >= enough
            });
            words.truncate(kept.map_or(words.len(), |last| last + 1));
        }
        // The likeliest has the weight 1.
        words.retain(|word| word.1 >= f64::from(self.min_p));
        let mut sum = 0.0;
        for word in &mut words {
            sum += word.1;
            word.1 = sum;
        }
        Law(words)
    }
}

impl Law {
    /// The word at this share of the whole weight.
    fn draw(&self, uniform: f64) -> Option<u32> {
        let (last, total) = *self.0.last()?;
        let place = self.0.partition_point(|word| word.1 <= uniform * total);
        Some(self.0.get(place).map_or(last, |word| word.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Filter = Filter {
        temperature: 1.0,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
    };

    /// The probability of every word that may be drawn.
    fn probabilities(filter: Filter) -> Vec<(u32, f64)> {
        // 0.1, 0.4, 0.2, forbidden, 0.3
        let logits = [0.1f32, 0.4, 0.2, 0.0, 0.3].map(|p| p.ln() + 3.0);
        let law = filter.law(&Row::new(&logits).unwrap()).0;
        let total = law.last().unwrap().1;
        let mut before = 0.0;
        let mut words: Vec<(u32, f64)> = law
            .iter()
            .map(|&(word, sum)| (word, (sum - std::mem::replace(&mut before, sum)) / total))
            .collect();
        words.sort_by_key(|word| word.0);
        words
    }

    #[track_caller]
    fn check(filter: Filter, expected: &[(u32, f64)]) {
        let found = probabilities(filter);
        let words = |law: &[(u32, f64)]| law.iter().map(|word| word.0).collect::<Vec<_>>();
        assert_eq!(words(&found), words(expected));
        for (found, expected) in found.iter().zip(expected) {
            assert!(
                (found.1 - expected.1).abs() < 1e-6,
                "{found:?} {expected:?}"
            );
        }
    }

    #[test]
    fn each_filter_works_on_what_the_one_before_left() {
        check(ALL, &[(0, 0.1), (1, 0.4), (2, 0.2), (4, 0.3)]);
        let top_k = Filter { top_k: 3, ..ALL };
        check(top_k, &[(1, 4.0 / 9.0), (2, 2.0 / 9.0), (4, 3.0 / 9.0)]);
        // 0.4 + 0.3 is not enough of 1, but it is of the three likeliest: 7 / 9.
        let top_p = Filter { top_p: 0.75, ..ALL };
        check(top_p, &[(1, 4.0 / 9.0), (2, 2.0 / 9.0), (4, 3.0 / 9.0)]);
        let both = Filter { top_k: 3, ..top_p };
        check(both, &[(1, 4.0 / 7.0), (4, 3.0 / 7.0)]);
        let min_p = Filter { min_p: 0.6, ..ALL };
        check(min_p, &[(1, 4.0 / 7.0), (4, 3.0 / 7.0)]);
        check(Filter { top_k: 1, ..ALL }, &[(1, 1.0)]);
        check(Filter { top_p: 0.0, ..ALL }, &[(1, 1.0)]);
        // The temperature 1/2 squares probabilities: 1, 16, 4, 9 of 30.
        let cold = Filter {
            temperature: 0.5,
            ..ALL
        };
        let thirtieths = [(0, 1.0), (1, 16.0), (2, 4.0), (4, 9.0)];
        check(cold, &thirtieths.map(|(word, n)| (word, n / 30.0)));
    }

    #[test]
    fn a_draw_is_the_word_at_its_share_of_the_weight() {
        let law = Law(vec![(7, 1.0), (3, 1.0), (5, 4.0)]); // 3 has no weight
        let drawn = [0.0, 0.2499, 0.25, 0.999, 1.0].map(|uniform| law.draw(uniform));
        assert_eq!(drawn, [7, 7, 5, 5, 5].map(Some));
        assert_eq!(Law(Vec::new()).draw(0.5), None);
    }
}
