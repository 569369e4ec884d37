use std::sync::Arc;

/// The numbers of the rows of a batch, by which random numbers are drawn.
///
/// A row's number is made of the place of its sentence in the whole batch and its position in the sentence, so that
/// it is the same in whichever part of the batch, or on whichever machine, the row is computed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowNumbers(Option<Arc<[u64]>>);

/// Positions take this many bits of a number.
const POSITION: u32 = 24;

impl RowNumbers {
    /// For rows that need no random numbers.
    pub const NONE: Self = Self(None);

    /// From the place of each row's sentence in the whole batch, and its position in the sentence.
    pub fn new(rows: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let number = |(place, position)| ((place as u64) << POSITION) | position as u64;
        Self(Some(rows.into_iter().map(number).collect()))
    }

    /// # Panics
    /// If there is no such row.
    #[inline(always)]
    pub fn of(&self, row: usize) -> u64 {
        match &self.0 {
            Some(numbers) => numbers[row],
            None => panic!("row {row} needs a number to draw random numbers by"),
        }
    }

    /// Those of some of the rows, in this order.
    pub fn select(&self, rows: &[u32]) -> Self {
        let numbers = self.0.as_deref();
        let select = |numbers: &[u64]| {
            rows.iter()
                .map(|&row| numbers[row as usize])
                .collect::<Arc<_>>()
        };
        Self(numbers.map(select))
    }
}
