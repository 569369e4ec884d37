//! Cutting sequences of different lengths into batches of a number of tokens.

use std::ops::Range;

/// The number of tokens on each side of a pair, including `</s>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lengths {
    /// Tokens on the target side. This is the first field because pairs are sorted by it first.
    pub target: usize,
    /// Tokens on the source side.
    pub source: usize,
}

/// The batches of one pass through the data, as lists of pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Epoch {
    pairs: Vec<usize>,
    pub(crate) batches: Vec<Range<usize>>,
}

impl Epoch {
    /// Every pair once, from short to long, without randomness: for validation.
    pub fn by_length(lengths: &[Lengths], batch_tokens: usize) -> Self {
        let mut pairs: Vec<usize> = (0..lengths.len()).collect();
        pairs.sort_by_key(|&i| lengths[i]);
        Self::cut(pairs, lengths, batch_tokens)
    }

    /// Number of batches.
    pub fn len(&self) -> usize {
        self.batches.len()
    }

    /// Whether there are no batches.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// The pairs of batch `index`.
    pub fn batch(&self, index: usize) -> &[usize] {
        &self.pairs[self.batches[index].clone()]
    }

    /// The batches in order.
    pub fn iter(&self) -> impl Iterator<Item = &[usize]> {
        self.batches.iter().map(|range| &self.pairs[range.clone()])
    }

    /// Starts a new batch when the next pair would exceed `batch_tokens` on either side.
    pub(crate) fn cut(pairs: Vec<usize>, lengths: &[Lengths], batch_tokens: usize) -> Self {
        let mut batches = Vec::new();
        let (mut start, mut source, mut target) = (0, 0, 0);
        for (end, &pair) in pairs.iter().enumerate() {
            let next = lengths[pair];
            let over = (source + next.source).max(target + next.target) > batch_tokens;
            if over && end > start {
                batches.push(start..end);
                (start, source, target) = (end, 0, 0);
            }
            source += next.source;
            target += next.target;
        }
        if start < pairs.len() {
            batches.push(start..pairs.len());
        }
        Self { pairs, batches }
    }
}

/// Batches for sequences of these lengths, from short to long. Each is a list of indices into
/// `lengths`, and has at most `budget` tokens. A sequence that is longer is a batch of its own.
pub fn batches_by_length(lengths: &[usize], budget: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&i| lengths[i]); // stable: sequences of equal length keep their order
    let mut batches: Vec<Vec<usize>> = Vec::new();
    let mut tokens = 0;
    for i in order {
        tokens += lengths[i];
        match batches.last_mut() {
            Some(batch) if tokens <= budget => batch.push(i),
            _ => {
                batches.push(vec![i]);
                tokens = lengths[i];
            }
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_by_length_go_from_short_to_long_within_the_budget() {
        let batches = batches_by_length(&[3, 1, 9, 2, 3, 1], 5);
        assert_eq!(batches, [vec![1, 5, 3], vec![0], vec![4], vec![2]]);
        assert_eq!(batches_by_length(&[7, 8], 0), [[0], [1]]);
        assert!(batches_by_length(&[], 5).is_empty());
    }

    #[test]
    fn batches_by_length_are_those_of_an_epoch_without_targets() {
        let lengths: Vec<usize> = (0..200).map(|i| (i * 7919) % 41 + 1).collect();
        let pairs = lengths.iter().map(|&source| Lengths { source, target: 0 });
        let pairs: Vec<Lengths> = pairs.collect();
        for budget in [0, 1, 20, 64, 1000, usize::MAX] {
            let epoch = Epoch::by_length(&pairs, budget);
            let batches = batches_by_length(&lengths, budget);
            assert!(epoch.iter().eq(&batches), "budget {budget}");
        }
    }
}
