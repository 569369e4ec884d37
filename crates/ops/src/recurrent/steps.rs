use attend_batch::Segments;

use super::Direction;

/// The steps of sentences of different lengths. Sentences are ordered from the longest to the shortest, so
/// that those which have a step t come first. Empty ones are left out.
pub(super) struct Steps {
    sentences: Segments,
    direction: Direction,
    order: Vec<usize>,
}

/// The fewest sentences per group: about the rows of a tile of a product.
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

    /// All sentences that are not empty.
    pub(super) fn order(&self) -> &[usize] {
        &self.order
    }

    /// The number of steps of ordered sentences.
    pub(super) fn longest(&self, order: &[usize]) -> usize {
        order.first().map_or(0, |&i| self.sentences.lengths()[i])
    }

    /// How many of the ordered sentences have a step `t`.
    pub(super) fn going(&self, order: &[usize], t: usize) -> usize {
        order.partition_point(|&i| self.sentences.lengths()[i] > t)
    }

    /// The position of the token of step `t`.
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

    /// Distributes the sentences, with a part for each, among groups. Each group runs all its steps on one
    /// thread. Sentences of similar lengths are together, and groups have about the same number of tokens.
    /// The number of groups depends on the threads. The bits do not, because rows are independent.
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

/// Some sentences, longest first, with a part for each.
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
    fn steps_take_the_longest_sentences_first_in_both_directions() {
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
    fn groups_have_every_sentence_once_and_similar_numbers_of_tokens() {
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
