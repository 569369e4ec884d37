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

    /// Some of the sequences, in their order. They know their places in the batch.
    pub fn part(&self, sequences: Range<usize>) -> Self {
        match self {
            Source::Tokens(tokens) => Source::Tokens(tokens.part(sequences)),
            Source::Pictures(pictures) => {
                let size = pictures.shape.values();
                let values = &pictures.values[sequences.start * size..sequences.end * size];
                Source::Pictures(Pictures {
                    values: values.to_vec(),
                    shape: pictures.shape,
                    segments: pictures.segments.select(sequences),
                })
            }
            Source::Features(features) => {
                let ranges = sequences.clone().map(|i| features.segments.range(i));
                let rows = ranges.flat_map(|rows| {
                    features.values[rows.start * features.width..rows.end * features.width].iter()
                });
                Source::Features(Features {
                    values: rows.copied().collect(),
                    width: features.width,
                    segments: features.segments.select(sequences),
                })
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
        let Source::Tokens(part) = tokens.part(1..3) else {
            panic!("a part of tokens is tokens")
        };
        assert_eq!(part.iter().collect::<Vec<_>>(), [&[3][..], &[4, 5, 6]]);
        assert_eq!(part.segments.place(0), 1);
        let values: Vec<f32> = (0..12).map(|x| x as f32).collect();
        let features = Source::Features(Features::new(values.clone(), 2, [2, 1, 3]));
        let Source::Features(part) = features.part(1..2) else {
            panic!("a part of features is features")
        };
        assert_eq!((part.values, part.segments.place(0)), (vec![4.0, 5.0], 1));
        assert_eq!(features.part(0..3), features);
        let shape = PictureShape {
            height: 2,
            width: 2,
            channels: 1,
        };
        let pictures = Source::Pictures(Pictures::new(values, shape));
        let Source::Pictures(part) = pictures.part(1..2) else {
            panic!("a part of pictures is pictures")
        };
        let values = vec![4.0, 5.0, 6.0, 7.0];
        assert_eq!((part.values, part.segments.place(0)), (values, 1));
        assert_eq!(pictures.segments().count(), 3);
    }
}
