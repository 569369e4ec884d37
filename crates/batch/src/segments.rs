use std::ops::Range;
use std::sync::Arc;

use crate::RowNumbers;

/// Where each sequence of a packed batch begins and how long it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segments(Arc<Inner>);

#[derive(Debug, PartialEq, Eq)]
struct Inner {
    starts: Vec<usize>,
    lengths: Vec<usize>,
    rows: usize,
    /// The place of each sentence in the whole batch, if this is a part of one, or in another order.
    places: Option<Vec<usize>>,
}

impl Segments {
    /// Sentences laid end to end.
    pub fn packed(lengths: impl IntoIterator<Item = usize>) -> Self {
        Self::placed(lengths.into_iter().collect(), None)
    }

    /// Some of the sentences of a batch, in this order, laid end to end. They know their places in the batch.
    pub fn select(&self, sentences: impl IntoIterator<Item = usize>) -> Self {
        let sentences: Vec<usize> = sentences.into_iter().collect();
        let lengths = sentences.iter().map(|&index| self.0.lengths[index]);
        let places = sentences.iter().map(|&index| self.place(index));
        Self::placed(lengths.collect(), Some(places.collect()))
    }

    /// The same sentences with other lengths, laid end to end.
    ///
    /// # Panics
    /// If there are not as many lengths as sentences.
    pub fn with_lengths(&self, lengths: impl IntoIterator<Item = usize>) -> Self {
        let lengths: Vec<usize> = lengths.into_iter().collect();
        assert_eq!(lengths.len(), self.count(), "lengths of sentences");
        Self::placed(lengths, self.0.places.clone())
    }

    fn placed(lengths: Vec<usize>, places: Option<Vec<usize>>) -> Self {
        // Sentences that are where they would be anyway.
        let places =
            places.filter(|places| places.iter().enumerate().any(|(i, &place)| i != place));
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
            places,
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
            places: None,
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

    /// The place of sentence `index` in the whole batch.
    pub fn place(&self, index: usize) -> usize {
        let places = self.0.places.as_ref();
        places.map_or(index, |places| places[index])
    }

    /// The numbers of all rows, by which random numbers are drawn.
    pub fn numbers(&self) -> RowNumbers {
        let lengths = self.0.lengths.iter().enumerate();
        RowNumbers::new(lengths.flat_map(|(index, &length)| {
            let place = self.place(index);
            (0..length).map(move |position| (place, position))
        }))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_keeps_its_number_in_any_part_of_the_batch_and_any_order() {
        let batch = Segments::packed([2, 3, 1, 4]);
        let all = batch.numbers();
        for sentences in [vec![2, 3], vec![3, 0, 1], vec![1]] {
            let part = batch.select(sentences.clone());
            let again = part
                .select(0..part.count())
                .with_lengths(part.lengths().to_vec());
            let rows = sentences.iter().flat_map(|&sentence| batch.range(sentence));
            for (here, row) in rows.enumerate() {
                assert_eq!(again.numbers().of(here), all.of(row), "{sentences:?}");
            }
        }
        assert_eq!(all.select(&[4, 0]).of(0), all.of(4));
        assert_eq!(batch.select(0..4), batch);
    }
}
