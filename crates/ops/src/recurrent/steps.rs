use super::Direction;
use crate::segments::Segments;

/// The steps through sentences of different lengths. The longest come first, so that those which are
/// still going at a step are the first so many; empty ones do not come at all.
pub(super) struct Steps {
    sentences: Segments,
    direction: Direction,
    order: Vec<usize>,
}

/// Sentences that are worth a thread: about as many rows as a tile of a product has.
const FEW: usize = 12;

impl Steps {
    pub(super) fn new(sentences: &Segments, direction: Direction) -> Self {
        let lengths = sentences.lengths();
        let mut order: Vec<usize> = (0..lengths.len()).filter(|&i| lengths[i] > 0).collect();
        order.sort_by_key(|&i| std::cmp::Reverse(lengths[i]));
        Self {
            sentences: sentences.clone(),
            direction,
            order,
        }
    }

    pub(super) fn sentences(&self) -> &Segments {
        &self.sentences
    }

    /// All sentences that have a token.
    pub(super) fn order(&self) -> &[usize] {
        &self.order
    }

    /// How many steps some sentences in order have.
    pub(super) fn longest(&self, order: &[usize]) -> usize {
        order.first().map_or(0, |&i| self.sentences.lengths()[i])
    }

    /// How many of some sentences in order have a step `t`.
    pub(super) fn going(&self, order: &[usize], t: usize) -> usize {
        order.partition_point(|&i| self.sentences.lengths()[i] > t)
    }

    /// Which token of a sentence step `t` takes.
    pub(super) fn place(&self, sentence: usize, t: usize) -> usize {
        match self.direction {
            Direction::Forward => t,
            Direction::Backward => self.sentences.lengths()[sentence] - 1 - t,
        }
    }

    /// The row of that token.
    pub(super) fn row(&self, sentence: usize, t: usize) -> usize {
        self.sentences.range(sentence).start + self.place(sentence, t)
    }

    /// A part of each sentence, dealt to groups that go through all their steps on one thread each:
    /// sentences of similar lengths together, and about as many tokens in each group. How many groups
    /// there are depends on the threads; the bits do not, since no row's sums depend on other rows.
    pub(super) fn deal<T>(&self, parts: Vec<T>, threads: usize) -> Vec<Group<T>> {
        let mut parts: Vec<Option<T>> = parts.into_iter().map(Some).collect();
        let count = threads.min(self.order.len() / FEW).max(1);
        let (mut groups, mut tokens) = (Vec::with_capacity(count), 0);
        groups.resize_with(count, Group::default);
        for &index in &self.order {
            let group = &mut groups[tokens * count / self.sentences.rows()];
            group.order.push(index);
            group.parts.extend(parts[index].take());
            tokens += self.sentences.lengths()[index];
        }
        groups
    }
}

/// Some sentences, longest first, with a part of something for each.
pub(super) struct Group<T> {
    pub(super) order: Vec<usize>,
    pub(super) parts: Vec<T>,
}

impl<T> Default for Group<T> {
    fn default() -> Self {
        Self {
            order: Vec::new(),
            parts: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_take_the_longest_first_and_go_from_either_end() {
        let sentences = Segments::packed([2, 0, 3, 2]);
        let steps = Steps::new(&sentences, Direction::Forward);
        assert_eq!(steps.order(), [2, 0, 3]);
        assert_eq!(
            [0, 1, 2, 3].map(|t| steps.going(&[2, 0, 3], t)),
            [3, 3, 1, 0]
        );
        assert_eq!([0, 1, 2].map(|t| steps.row(2, t)), [2, 3, 4]);
        let steps = Steps::new(&sentences, Direction::Backward);
        assert_eq!([0, 1, 2].map(|t| steps.row(2, t)), [4, 3, 2]);
    }

    #[test]
    fn groups_have_every_sentence_once_and_about_as_many_tokens_each() {
        let lengths: Vec<usize> = (0..60).map(|i| i * 7 % 25).collect();
        let steps = Steps::new(&Segments::packed(lengths.clone()), Direction::Forward);
        for threads in 1..8 {
            let groups = steps.deal(lengths.clone(), threads);
            assert_eq!(groups.len(), threads.min(4));
            let all: Vec<usize> = groups.iter().flat_map(|g| g.order.clone()).collect();
            assert_eq!(all, steps.order());
            let fair = lengths.iter().sum::<usize>() / groups.len();
            for group in groups {
                let tokens: usize = group.parts.iter().sum();
                assert!(tokens.abs_diff(fair) <= 25, "{tokens} of {fair}");
            }
        }
        let none = Steps::new(&Segments::packed([0, 0]), Direction::Forward);
        assert!(none.deal(vec![0, 0], 3)[0].order.is_empty());
    }
}
