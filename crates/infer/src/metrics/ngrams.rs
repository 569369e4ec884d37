use std::collections::HashMap;

/// The n-grams of a sequence, for n from 1 to `N`.
///
/// Symbols are nonzero and fit into 128 / `N` bits, so the `N` symbols from a position on fit into one
/// integer. Its leading n symbols are the n-gram at that position, so sorting once sorts the n-grams
/// of every order.
pub(super) struct Ngrams<const N: usize>(Vec<u128>);

impl<const N: usize> Ngrams<N> {
    const BITS: usize = 128 / N;

    pub(super) fn new(symbols: &[u32]) -> Self {
        let mut key = 0;
        let keys = symbols.iter().rev().map(|&symbol| {
            key = u128::from(symbol) << (Self::BITS * (N - 1)) | key >> Self::BITS;
            key
        });
        let mut keys: Vec<u128> = keys.collect();
        keys.sort_unstable();
        Self(keys)
    }

    /// The length of the sequence.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The number of n-grams.
    pub(super) fn count(&self, n: usize) -> usize {
        (self.len() + 1).saturating_sub(n)
    }

    /// For each n, the number of n-grams that are also in a reference. One that occurs i times here and at
    /// most k times in a reference is shared min(i, k) times (the clipped counts of Papineni et al. 2002).
    pub(super) fn shared(&self, references: &[Self]) -> [usize; N] {
        std::array::from_fn(|order| {
            let unused = Self::BITS * (N - 1 - order);
            let mut rest: Vec<&[u128]> = references.iter().map(|r| r.0.as_slice()).collect();
            let (mut left, mut shared) = (self.0.as_slice(), 0);
            while let Some(&first) = left.first() {
                let ngram = first >> unused;
                let times = run(&mut left, |key| key >> unused == ngram);
                // Near the end of a sequence the last symbols are missing, so there is no n-gram.
                if ngram & ((1 << Self::BITS) - 1) == 0 {
                    continue;
                }
                let in_references = rest.iter_mut().map(|right| {
                    run(right, |key| key >> unused < ngram);
                    run(right, |key| key >> unused == ngram)
                });
                shared += times.min(in_references.max().unwrap_or(0));
            }
            shared
        })
    }
}

/// Removes the leading keys that fit, and returns how many they were.
fn run(keys: &mut &[u128], fits: impl Fn(u128) -> bool) -> usize {
    let count = keys.iter().take_while(|key| fits(**key)).count();
    *keys = &keys[count..];
    count
}

/// Numbers for words, from 1.
#[derive(Default)]
pub(super) struct WordIds<'a>(HashMap<&'a str, u32>);

impl<'a> WordIds<'a> {
    pub(super) fn of(&mut self, words: impl IntoIterator<Item = &'a str>) -> Vec<u32> {
        let words = words.into_iter();
        words
            .map(|word| {
                let next = self.0.len() as u32 + 1;
                *self.0.entry(word).or_insert(next)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared<const N: usize>(left: &[u32], right: &[&[u32]]) -> [usize; N] {
        let right: Vec<_> = right.iter().map(|symbols| Ngrams::new(symbols)).collect();
        Ngrams::new(left).shared(&right)
    }

    #[test]
    fn shared_ngrams_are_clipped_and_complete() {
        assert_eq!(shared::<4>(&[1, 1, 1], &[&[1, 1]]), [2, 1, 0, 0]);
        assert_eq!(shared::<4>(&[2, 1], &[&[3, 1]]), [1, 0, 0, 0]);
        assert_eq!(shared::<4>(&[], &[&[1]]), [0; 4]);
        let top = [0x110000; 6]; // the largest symbol of chrF
        assert_eq!(shared::<6>(&top, &[&top]), [6, 5, 4, 3, 2, 1]);
    }

    #[test]
    fn each_ngram_is_looked_up_in_the_reference_that_has_it_most_often() {
        let references: [&[u32]; 2] = [&[1, 1, 5], &[2, 2, 2]];
        assert_eq!(shared::<2>(&[1, 1, 1, 2, 2], &references), [4, 2]);
        assert_eq!(shared::<2>(&[1, 2], &[]), [0, 0]);
    }
}
