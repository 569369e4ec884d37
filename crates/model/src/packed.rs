use attend_ops::Segments;

/// A batch of sentences laid end to end, each ending in its end-of-sentence token.
#[derive(Clone, Debug)]
pub struct Packed {
    pub ids: Vec<u32>,
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

    pub fn of_sentences(sentences: &[impl AsRef<[u32]>]) -> Self {
        let ids = sentences.iter().flat_map(|s| s.as_ref()).copied().collect();
        Self::new(ids, sentences.iter().map(|s| s.as_ref().len()))
    }

    /// What a decoder reads to predict these sentences: each moved right by one, `start` in front.
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
        let packed = Packed::of_sentences(&[vec![5, 6, 0], vec![0], vec![7, 0]]);
        assert_eq!(packed.shifted(9), [9, 5, 6, 9, 9, 7]);
    }
}
