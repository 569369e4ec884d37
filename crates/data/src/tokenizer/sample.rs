//! The pairs that a tokenizer is trained on.

use crate::random::Draws;
use crate::{Corpus, Result};

/// The most bytes of text.
const BYTES: usize = 128 << 20;
/// Bytes of text from which on room is made for all, so that growing does not copy it.
const LARGE: usize = 1 << 24;
const SEED: u64 = 0x746f_6b65_6e69_7a65; // the sample is the same for every seed of a training

/// A bounded sample of pairs, a pure function of the pairs and their order. They stay in this order.
///
/// Each pair has a random number, and those with the lowest ones are kept: all pairs at first, then half of them, then a
/// quarter, so that there are never more than the limit.
#[derive(Clone, Debug)]
pub struct Sample {
    pairs: Vec<Kept>,
    text: String,   // source and target of each pair, one after the other
    threshold: u64, // the highest number that is kept
    seen: u64,
    most: usize,
    bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    number: u64,
    middle: usize, // where the source ends and the target begins
    end: usize,
}

impl Sample {
    /// At most this many pairs, and at most 128 MiB of text. One pair is always kept.
    pub fn new(most: usize) -> Self {
        Self::within(most, BYTES)
    }

    fn within(most: usize, bytes: usize) -> Self {
        Self {
            pairs: Vec::new(),
            text: String::new(),
            threshold: u64::MAX,
            seen: 0,
            most,
            bytes,
        }
    }

    /// Whether this many pairs with this many bytes are within the limits, so that all would be kept.
    pub(super) fn holds(most: usize, corpus: &Corpus) -> bool {
        let lines = corpus.source.iter().chain(&corpus.target);
        corpus.len() <= most && lines.map(String::len).sum::<usize>() <= BYTES
    }

    /// Offers the next pair.
    pub fn push(&mut self, source: &str, target: &str) {
        let number = Draws::new(SEED, []).bits(self.seen);
        self.seen += 1;
        if number > self.threshold {
            return;
        }
        if self.text.len() >= LARGE.min(self.bytes) {
            let room = self.bytes.saturating_sub(self.text.len());
            self.text
                .reserve_exact(room.max(source.len() + target.len()));
        }
        self.text.push_str(source);
        let middle = self.text.len();
        self.text.push_str(target);
        let end = self.text.len();
        self.pairs.push(Kept {
            number,
            middle,
            end,
        });
        while self.pairs.len() > 1 && (self.pairs.len() > self.most || self.text.len() > self.bytes)
        {
            // The numbers are all different, so that this ends.
            let lowest = self.pairs.iter().map(|pair| pair.number).min();
            self.threshold = (self.threshold / 2).max(lowest.unwrap_or(0));
            self.shrink();
        }
    }

    /// Drops the pairs above the threshold.
    fn shrink(&mut self) {
        let threshold = self.threshold;
        let mut bytes = std::mem::take(&mut self.text).into_bytes();
        let (mut begin, mut length) = (0, 0);
        self.pairs.retain_mut(|pair| {
            let Kept { middle, end, .. } = *pair;
            let is_kept = pair.number <= threshold;
            if is_kept {
                bytes.copy_within(begin..end, length);
                pair.middle = length + middle - begin;
                length += end - begin;
                pair.end = length;
            }
            begin = end;
            is_kept
        });
        bytes.truncate(length);
        self.text = String::from_utf8(bytes).unwrap_or_default(); // whole texts, so always UTF-8
    }

    /// Number of pairs that were offered.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Number of pairs that are kept.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether no pair was offered.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The pairs that are kept, source and target, in their order.
    pub fn pairs(&self) -> impl ExactSizeIterator<Item = (&str, &str)> + Clone + Send {
        (0..self.pairs.len()).map(|index| {
            let begin = index
                .checked_sub(1)
                .map_or(0, |before| self.pairs[before].end);
            let Kept { middle, end, .. } = self.pairs[index];
            (&self.text[begin..middle], &self.text[middle..end])
        })
    }

    /// The pairs that are kept. It is an error if there are none.
    pub fn into_corpus(self) -> Result<Corpus> {
        let owned = self.pairs().map(|(s, t)| (s.to_string(), t.to_string()));
        let (source, target) = owned.unzip();
        Corpus::new(source, target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(i: usize) -> (String, String) {
        (format!("source {i}"), "t".repeat(i % 7))
    }

    fn sample(mut sample: Sample, pairs: usize) -> Sample {
        for (source, target) in (0..pairs).map(pair) {
            sample.push(&source, &target);
        }
        sample
    }

    fn kept(sample: &Sample) -> Vec<usize> {
        let number = |(source, target): (&str, &str)| {
            let i = source["source ".len()..].parse().unwrap();
            assert_eq!((source, target), (&*pair(i).0, &*pair(i).1));
            i
        };
        sample.pairs().map(number).collect()
    }

    #[test]
    fn pairs_within_the_limits_are_all_kept() {
        let all = sample(Sample::new(100), 100);
        assert_eq!(kept(&all), (0..100).collect::<Vec<_>>());
        assert_eq!((all.len(), all.seen()), (100, 100));
        let corpus = all.into_corpus().unwrap();
        assert_eq!((&*corpus.source[9], &*corpus.target[9]), ("source 9", "tt"));
        assert!(Sample::new(5).into_corpus().is_err());
    }

    #[test]
    fn more_pairs_are_thinned_out_evenly_and_stay_in_their_order() {
        for most in [1, 2, 3, 64, 1000] {
            let thin = sample(Sample::new(most), 20_000);
            let kept = kept(&thin);
            assert!((1..=most).contains(&kept.len()));
            assert!(kept.is_sorted());
            assert_eq!(thin.seen(), 20_000);
            if most == 1000 {
                assert!(kept.len() > 400, "{}", kept.len());
                let early = kept.iter().filter(|i| **i < 10_000).count();
                assert!(early.abs_diff(kept.len() / 2) < 80, "{early}");
            }
        }
    }

    #[test]
    fn text_is_limited_in_bytes_but_one_pair_is_kept() {
        let thin = sample(Sample::within(1000, 2000), 1000);
        assert!(thin.text.len() <= 2000 && thin.text.len() > 500);
        let one = sample(Sample::within(1000, 1), 50);
        assert_eq!(one.len(), 1);
        assert_eq!(sample(Sample::new(0), 3).len(), 1);
    }

    #[test]
    fn a_pair_is_kept_for_its_place_and_not_for_its_text() {
        let mut other = Sample::new(64);
        (0..1000).for_each(|_| other.push("a", "b"));
        assert_eq!(other.len(), sample(Sample::new(64), 1000).len());
    }
}
