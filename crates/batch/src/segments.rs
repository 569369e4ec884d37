use std::ops::Range;
use std::sync::Arc;

/// Where each sequence of a packed batch begins and how long it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segments(Arc<Inner>);

#[derive(Debug, PartialEq, Eq)]
struct Inner {
    starts: Vec<usize>,
    lengths: Vec<usize>,
    rows: usize,
}

impl Segments {
    /// Sentences laid end to end.
    pub fn packed(lengths: impl IntoIterator<Item = usize>) -> Self {
        let lengths: Vec<usize> = lengths.into_iter().collect();
        let mut rows = 0;
        let starts = lengths
            .iter()
            .map(|length| {
                rows += length;
                rows - length
            })
            .collect();
        Self(Arc::new(Inner {
            starts,
            lengths,
            rows,
        }))
    }

    /// `count` sequences of `length` rows, `capacity` rows apart: a cache that is being filled.
    pub fn with_capacity(count: usize, capacity: usize, length: usize) -> Self {
        assert!(
            length <= capacity,
            "{length} rows in a capacity of {capacity}"
        );
        Self(Arc::new(Inner {
            starts: (0..count).map(|i| i * capacity).collect(),
            lengths: vec![length; count],
            rows: count * capacity,
        }))
    }

    /// How many sentences.
    pub fn count(&self) -> usize {
        self.0.starts.len()
    }

    /// Rows of the tensor that these segments describe.
    pub fn rows(&self) -> usize {
        self.0.rows
    }

    pub fn lengths(&self) -> &[usize] {
        &self.0.lengths
    }

    pub fn longest(&self) -> usize {
        self.0.lengths.iter().copied().max().unwrap_or(0)
    }

    /// The rows of sentence `index`.
    pub fn range(&self, index: usize) -> Range<usize> {
        let start = self.0.starts[index];
        start..start + self.0.lengths[index]
    }

    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        (0..self.count()).map(|index| self.range(index))
    }

    /// The place of every row within its sentence: 0, 1, …, 0, 1, …
    pub fn positions(&self) -> Vec<u32> {
        let lengths = self.0.lengths.iter();
        lengths.flat_map(|&length| 0..length as u32).collect()
    }

    /// A packed `[rows, width]` buffer, cut into its sentences.
    pub fn split<'a, T>(&self, mut data: &'a mut [T], width: usize) -> Vec<&'a mut [T]> {
        assert_eq!(data.len(), self.rows() * width, "packed rows");
        let mut parts = Vec::with_capacity(self.count());
        for &length in self.lengths() {
            let (part, rest) = data.split_at_mut(length * width);
            parts.push(part);
            data = rest;
        }
        parts
    }
}
