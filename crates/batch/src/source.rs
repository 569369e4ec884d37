use std::fmt;
use std::ops::Range;

use crate::{Packed, PictureShape, Pictures, Segments};

/// What the sources of a model are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceShape {
    /// Sentences of token ids.
    #[default]
    Text,
    /// Pictures of this size.
    Pictures(PictureShape),
    /// Sequences of this many features in a row.
    Features { width: usize },
}

/// For people: `text`, `pictures` or `features`, with their sizes.
impl fmt::Display for SourceShape {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Text => f.write_str("text"),
            Self::Pictures(shape) => {
                let grey = if shape.channels == 1 { "grey " } else { "" };
                let (height, width) = (shape.height, shape.width);
                write!(f, "{grey}pictures of {height} × {width} pixels")
            }
            Self::Features { width } => write!(f, "rows of {width} features"),
        }
    }
}

/// What an encoder reads.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Sentences, as token ids.
    Tokens(Packed),
    /// Pictures of one size. They have no vocabulary.
    Pictures(Pictures),
    /// Sequences of feature vectors, such as the frames of speech. They have no vocabulary.
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
    /// The sequences. A picture is a sequence of length 1.
    pub fn segments(&self) -> &Segments {
        match self {
            Source::Tokens(tokens) => &tokens.segments,
            Source::Pictures(pictures) => &pictures.segments,
            Source::Features(features) => &features.segments,
        }
    }

    /// What these sources are.
    pub fn shape(&self) -> SourceShape {
        match self {
            Source::Tokens(_) => SourceShape::Text,
            Source::Pictures(pictures) => SourceShape::Pictures(pictures.shape),
            Source::Features(features) => SourceShape::Features {
                width: features.width,
            },
        }
    }

    /// Some of the sequences, in their order.
    pub fn part(&self, sequences: Range<usize>) -> Self {
        match self {
            Source::Tokens(tokens) => Source::Tokens(tokens.part(sequences)),
            Source::Pictures(pictures) => {
                let size = pictures.shape.values();
                let values = &pictures.values[sequences.start * size..sequences.end * size];
                Source::Pictures(Pictures::new(values.to_vec(), pictures.shape))
            }
            Source::Features(features) => {
                let lengths = features.segments.lengths()[sequences.clone()].iter();
                let ranges = sequences.map(|i| features.segments.range(i));
                let rows = ranges.flat_map(|rows| {
                    features.values[rows.start * features.width..rows.end * features.width].iter()
                });
                let values = rows.copied().collect();
                Source::Features(Features::new(values, features.width, lengths.copied()))
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
        let values: Vec<f32> = (0..12).map(|x| x as f32).collect();
        let features = Source::Features(Features::new(values.clone(), 2, [2, 1, 3]));
        let part = Source::Features(Features::new(vec![4.0, 5.0], 2, [1]));
        assert_eq!(features.part(1..2), part);
        assert_eq!(features.part(0..3), features);
        let shape = PictureShape {
            height: 2,
            width: 2,
            channels: 1,
        };
        let pictures = Source::Pictures(Pictures::new(values, shape));
        let part = Source::Pictures(Pictures::new(vec![4.0, 5.0, 6.0, 7.0], shape));
        assert_eq!(pictures.part(1..2), part);
        assert_eq!(pictures.segments().count(), 3);
    }
}
