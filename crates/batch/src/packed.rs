use std::ops::Range;

use crate::Segments;

/// A batch of sentences laid end to end, without padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    /// All ids, sentence after sentence, each ending in its end-of-sentence token.
    pub ids: Vec<u32>,
    /// The length of each sentence, the end-of-sentence token included.
    pub segments: Segments,
}

impl Packed {
    /// # Panics
    /// If the lengths do not add up to the number of ids.
    pub fn new(ids: Vec<u32>, lengths: impl IntoIterator<Item = usize>) -> Self {
        let segments = Segments::packed(lengths);
        assert_eq!(ids.len(), segments.rows(), "tokens of a packed batch");
        Self { ids, segments }
    }

    pub fn of_sentences<S: AsRef<[u32]>>(sentences: impl IntoIterator<Item = S>) -> Self {
        let (mut ids, mut lengths) = (Vec::new(), Vec::new());
        for sentence in sentences {
            ids.extend_from_slice(sentence.as_ref());
            lengths.push(sentence.as_ref().len());
        }
        Self::new(ids, lengths)
    }

    /// The ids of sentence `index`.
    pub fn sentence(&self, index: usize) -> &[u32] {
        &self.ids[self.segments.range(index)]
    }

    /// The sentences, one by one.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.segments.ranges().map(|range| &self.ids[range])
    }

    /// Some of the sentences, in their order. They know their places in the batch.
    pub fn part(&self, sentences: Range<usize>) -> Self {
        let ids = sentences.clone().flat_map(|index| self.sentence(index));
        Self {
            ids: ids.copied().collect(),
            segments: self.segments.select(sentences),
        }
    }

    /// What a decoder reads to predict these sentences: each shifted right by one, `start` in front.
    pub fn shifted(&self, start: u32) -> Vec<u32> {
        let mut ids = Vec::with_capacity(self.ids.len());
        for range in self.segments.ranges() {
            if !range.is_empty() {
                ids.push(start);
                ids.extend_from_slice(&self.ids[range.start..range.end - 1]);
            }
        }
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifting_puts_the_start_before_every_sentence_and_drops_its_last_token() {
        let packed = Packed::of_sentences([vec![5, 6, 0], vec![0], vec![7, 0]]);
        assert_eq!(packed.shifted(9), [9, 5, 6, 9, 9, 7]);
    }

    #[test]
    fn sentences_come_out_as_they_went_in() {
        let sentences = [vec![5, 6, 0], vec![], vec![7, 0]];
        let packed = Packed::of_sentences(&sentences);
        assert_eq!(packed.iter().collect::<Vec<_>>(), sentences);
    }
}
