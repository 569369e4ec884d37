use std::ops::Range;

use crate::{Packed, Segments};

/// What an encoder reads.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Sentences, as token ids.
    Tokens(Packed),
    /// Sequences of feature vectors, such as the regions of a picture. They have no vocabulary.
    Features(Features),
}

/// A batch of sequences of feature vectors laid end to end.
#[derive(Clone, Debug, PartialEq)]
pub struct Features {
    /// `[rows, width]`, row after row.
    pub values: Vec<f32>,
    pub width: usize,
    pub segments: Segments,
}

impl Features {
    /// # Panics
    /// If the lengths do not add up to the number of rows.
    pub fn new(values: Vec<f32>, width: usize, lengths: impl IntoIterator<Item = usize>) -> Self {
        let segments = Segments::packed(lengths);
        assert_eq!(values.len(), segments.rows() * width, "rows of features");
        Self {
            values,
            width,
            segments,
        }
    }
}

impl Source {
    pub fn segments(&self) -> &Segments {
        match self {
            Source::Tokens(tokens) => &tokens.segments,
            Source::Features(features) => &features.segments,
        }
    }

    /// Some of the sequences, in their order.
    pub fn part(&self, sequences: Range<usize>) -> Self {
        let lengths = self.segments().lengths()[sequences.clone()].iter().copied();
        match self {
            Source::Tokens(tokens) => Source::Tokens(tokens.part(sequences)),
            Source::Features(features) => {
                let ranges = sequences.map(|i| features.segments.range(i));
                let rows = ranges.flat_map(|rows| {
                    features.values[rows.start * features.width..rows.end * features.width].iter()
                });
                let values = rows.copied().collect();
                Source::Features(Features::new(values, features.width, lengths))
            }
        }
    }
}

impl From<Packed> for Source {
    fn from(tokens: Packed) -> Self {
        Source::Tokens(tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_holds_the_sequences_asked_for() {
        let tokens = Source::from(Packed::of_sentences([vec![1, 2], vec![3], vec![4, 5, 6]]));
        let part = Source::from(Packed::of_sentences([vec![3], vec![4, 5, 6]]));
        assert_eq!(tokens.part(1..3), part);
        let values = (0..12).map(|x| x as f32).collect();
        let features = Source::Features(Features::new(values, 2, [2, 1, 3]));
        let part = Source::Features(Features::new(vec![4.0, 5.0], 2, [1]));
        assert_eq!(features.part(1..2), part);
        assert_eq!(features.part(0..3), features);
    }
}
