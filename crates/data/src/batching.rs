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
    batches: Vec<Range<usize>>,
}

impl Epoch {
    /// Every pair once, from short to long, without randomness: for validation.
    pub fn by_length(lengths: &[Lengths], batch_tokens: usize) -> Self {
        let mut pairs: Vec<usize> = (0..lengths.len()).collect();
        pairs.sort_by_key(|&i| lengths[i]);
        let sorted: Vec<Lengths> = pairs.iter().map(|&i| lengths[i]).collect();
        let batches = cut_greedily(&sorted, batch_tokens);
        Self { pairs, batches }
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
}

/// Cuts pairs of these lengths, in their order, into batches of at most `batch_tokens` tokens on either side. A pair
/// that is longer is a batch of its own.
///
/// There are as few batches as possible, and they are about equally large: a small batch at the end would have as
/// much influence on the model as the others.
pub(crate) fn cut(lengths: &[Lengths], batch_tokens: usize) -> Vec<Range<usize>> {
    let fewest = cut_greedily(lengths, batch_tokens).len();
    let (mut too_small, mut enough) = (0, batch_tokens);
    while enough - too_small > 1 {
        let middle = too_small + (enough - too_small) / 2;
        match cut_greedily(lengths, middle).len() > fewest {
            true => too_small = middle,
            false => enough = middle,
        }
    }
    cut_evenly(lengths, enough)
}

/// As few batches as possible. What they have less than `batch_tokens` is spread over all of them.
fn cut_evenly(lengths: &[Lengths], batch_tokens: usize) -> Vec<Range<usize>> {
    // A batch can end nowhere after its end here, where the last batch is the small one ...
    let latest = cut_greedily(lengths, batch_tokens);
    let count = latest.len();
    // ... and nowhere before this, where the first one is: the rest would not fit into the other batches.
    let mut earliest = vec![lengths.len()];
    while let Some(&end @ 1..) = earliest.last() {
        earliest.push(end - fill(lengths[..end].iter().rev(), batch_tokens));
    }
    earliest.reverse();
    let mut batches = Vec::with_capacity(count);
    let mut start = 0;
    for (k, latest) in latest.iter().enumerate() {
        let earliest = earliest[k + 1];
        let moved = (latest.end - earliest) as u128 * (k as u128 + 1) / count as u128;
        let most = start + fill(lengths[start..].iter(), batch_tokens);
        let end = (latest.end - moved as usize).min(most);
        batches.push(start..end);
        start = end;
    }
    batches
}

/// Starts a new batch when the next pair would exceed `batch_tokens` on either side.
fn cut_greedily(lengths: &[Lengths], batch_tokens: usize) -> Vec<Range<usize>> {
    let mut batches = Vec::new();
    let mut start = 0;
    while start < lengths.len() {
        let end = start + fill(lengths[start..].iter(), batch_tokens);
        batches.push(start..end);
        start = end;
    }
    batches
}

/// How many of the next pairs fit into a batch. The first always does.
fn fill<'a>(pairs: impl Iterator<Item = &'a Lengths>, batch_tokens: usize) -> usize {
    let (mut source, mut target) = (0, 0);
    let fits = |pair: &&Lengths| {
        source += pair.source;
        target += pair.target;
        source.max(target) <= batch_tokens
    };
    pairs.take_while(fits).count().max(1)
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
    fn a_pool_is_cut_into_the_fewest_batches_of_about_equal_size() {
        let lengths: Vec<Lengths> = (0..1000)
            .map(|i| Lengths {
                source: 5 + i / 50,
                target: 4 + i / 40,
            })
            .collect();
        let tokens = |range: &Range<usize>| lengths[range.clone()].iter().map(|l| l.target).sum();
        for budget in [400, 977, 1500] {
            let batches = cut(&lengths, budget);
            assert_eq!(batches.len(), cut_greedily(&lengths, budget).len());
            assert_eq!(batches.iter().map(Range::len).sum::<usize>(), 1000);
            let sizes: Vec<usize> = batches.iter().map(tokens).collect();
            let (least, most) = (*sizes.iter().min().unwrap(), *sizes.iter().max().unwrap());
            assert!(most <= budget && 4 * least >= 3 * most, "{sizes:?}");
        }
        let equal = [Lengths {
            source: 20,
            target: 20,
        }; 641];
        let sizes = cut(&equal, 220).into_iter().map(|range| range.len());
        assert_eq!(sizes.clone().count(), 59);
        assert!(
            sizes.clone().all(|size| [10, 11].contains(&size)),
            "{sizes:?}"
        );
        assert_eq!(cut(&lengths, usize::MAX).len(), 1);
        assert_eq!(cut(&lengths, 1).len(), 1000);
        assert!(cut(&[], 5).is_empty());
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
