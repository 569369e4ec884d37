//! The edit distance of two sequences near the diagonal.

/// More than any distance, with room for one more edit.
const FAR: u32 = u32::MAX / 2;
/// How far from the diagonal distances are computed, in words.
const WIDTH: usize = 25;

/// The distances between the beginnings of a hypothesis and of the reference.
pub(super) struct Distances<'r> {
    reference: &'r [u32],
    /// For each number of words of the hypothesis, the first and the end of the numbers of words of the
    /// reference whose distances are computed.
    bands: Vec<(usize, usize)>,
    rows: Vec<Vec<u32>>,
}

/// How a word of the hypothesis or of the reference is dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edit {
    Keep,
    Replace,
    /// A word that only the hypothesis has.
    Delete,
    /// A word that only the reference has.
    Insert,
}

impl<'r> Distances<'r> {
    pub(super) fn new(hypothesis: &[u32], reference: &'r [u32]) -> Self {
        let mut this = Self {
            reference,
            bands: bands(hypothesis.len(), reference.len()),
            rows: vec![(0..=reference.len() as u32).collect()],
        };
        for (i, &word) in hypothesis.iter().enumerate() {
            let mut row = Vec::new();
            this.row(i + 1, word, &this.rows[i], &mut row);
            this.rows.push(row);
        }
        this
    }

    /// Computes one row from the one before.
    fn row(&self, i: usize, word: u32, before: &[u32], row: &mut Vec<u32>) {
        let (start, end) = self.bands[i];
        let above = |j: usize| cell(before, j, self.bands[i - 1].0);
        let mut left = FAR;
        row.clear();
        row.extend((start..end).map(|j| {
            let deleted = above(j) + 1;
            let distance = match j {
                0 => deleted,
                _ => {
                    let replaced = above(j - 1) + u32::from(word != self.reference[j - 1]);
                    replaced.min(deleted).min(left + 1)
                }
            };
            left = distance.min(FAR);
            left
        }));
    }

    /// The distance of the whole sequences.
    pub(super) fn total(&self) -> u32 {
        let last = self.rows.last().and_then(|row| row.last());
        last.copied().unwrap_or(0)
    }

    /// The total for a permutation of the hypothesis that differs from it only in `changed`.
    pub(super) fn total_of(&self, words: &[u32], changed: std::ops::Range<usize>) -> u32 {
        let mut before = self.rows[changed.start].clone();
        let mut row = Vec::with_capacity(before.len());
        for i in changed.start + 1..=words.len() {
            self.row(i, words[i - 1], &before, &mut row);
            // Rows after the change are functions of the row before. If all distances differ from the known
            // ones by the same number, so do all that follow.
            if i >= changed.end
                && let Some(more) = difference(&row, &self.rows[i])
            {
                return self.total().saturating_add_signed(more);
            }
            std::mem::swap(&mut before, &mut row);
        }
        before.last().copied().unwrap_or(0)
    }

    /// The edits from left to right. Of those with the same number, keeping or replacing comes first, then
    /// deleting.
    pub(super) fn edits(&self, hypothesis: &[u32]) -> Vec<Edit> {
        let (mut i, mut j) = (hypothesis.len(), self.reference.len());
        let mut edits = Vec::with_capacity(i.max(j));
        let at = |i: usize, j: usize| cell(&self.rows[i], j, self.bands[i].0);
        while i > 0 || j > 0 {
            let edit = if i == 0 {
                Edit::Insert
            } else if j == 0 {
                Edit::Delete
            } else {
                let same = hypothesis[i - 1] == self.reference[j - 1];
                let distance = at(i, j);
                if distance == at(i - 1, j - 1) + u32::from(!same) {
                    if same { Edit::Keep } else { Edit::Replace }
                } else if distance == at(i - 1, j) + 1 {
                    Edit::Delete
                } else {
                    Edit::Insert
                }
            };
            i -= usize::from(edit != Edit::Insert);
            j -= usize::from(edit != Edit::Delete);
            edits.push(edit);
        }
        edits.reverse();
        edits
    }
}

/// The distance at column `j` of a row that begins at column `start`.
fn cell(row: &[u32], j: usize, start: usize) -> u32 {
    let index = j.checked_sub(start);
    let found = index.and_then(|index| row.get(index));
    found.copied().unwrap_or(FAR)
}

/// The columns of each row: near the diagonal of the matrix, which need not be a square.
fn bands(hypothesis: usize, reference: usize) -> Vec<(usize, usize)> {
    let ratio = match hypothesis {
        0 => 1.0,
        _ => reference as f64 / hypothesis as f64,
    };
    // Steep diagonals need more, or a row would not touch the next one.
    let width = match ratio / 2.0 > WIDTH as f64 {
        true => (ratio / 2.0 + WIDTH as f64).ceil() as usize,
        false => WIDTH,
    };
    let rows = (1..=hypothesis).map(|i| {
        let diagonal = (i as f64 * ratio).floor() as usize;
        let end = match i == hypothesis {
            true => reference + 1,
            false => (reference + 1).min(diagonal + width),
        };
        (diagonal.saturating_sub(width), end)
    });
    std::iter::once((0, reference + 1)).chain(rows).collect()
}

/// How much more each number of `left` is, if that is the same everywhere.
fn difference(left: &[u32], right: &[u32]) -> Option<i32> {
    let mut more = None;
    for (&left, &right) in left.iter().zip(right) {
        match (left == FAR, right == FAR) {
            (true, true) => continue,
            (false, false) => {}
            _ => return None,
        }
        let this = left as i32 - right as i32; // both are lengths of lines at most
        if more.is_some_and(|more| more != this) {
            return None;
        }
        more = Some(this);
    }
    more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_of_short_sequences_are_those_of_levenshtein() {
        fn recursive(left: &[u32], right: &[u32]) -> u32 {
            let (Some((a, left_rest)), Some((b, right_rest))) =
                (left.split_first(), right.split_first())
            else {
                return (left.len() + right.len()) as u32;
            };
            let replaced = recursive(left_rest, right_rest) + u32::from(a != b);
            let deleted = recursive(left_rest, right) + 1;
            replaced.min(deleted).min(recursive(left, right_rest) + 1)
        }
        let sequences: [&[u32]; 6] = [&[], &[1], &[1, 2, 3], &[3, 1, 2], &[2, 2, 1, 3], &[4, 1]];
        for left in sequences {
            for right in sequences {
                let distances = Distances::new(left, right);
                assert_eq!(
                    distances.total(),
                    recursive(left, right),
                    "{left:?} {right:?}"
                );
                let edits = distances.edits(left);
                let paid = edits.iter().filter(|edit| **edit != Edit::Keep).count();
                assert_eq!(paid as u32, distances.total());
            }
        }
    }

    #[test]
    fn a_changed_part_gives_the_total_of_the_whole() {
        let reference: Vec<u32> = (0..60).collect();
        let words: Vec<u32> = (0..60).map(|i| (i * 7) % 60).collect();
        let distances = Distances::new(&words, &reference);
        for start in 0..59 {
            for end in start + 1..60 {
                let mut changed = words.clone();
                changed[start..end].rotate_left(1);
                let total = distances.total_of(&changed, start..end);
                assert_eq!(total, Distances::new(&changed, &reference).total());
            }
        }
    }

    #[test]
    fn sequences_of_very_different_lengths_have_a_distance() {
        let long: Vec<u32> = (0..500).collect();
        for (left, right) in [
            (&long[..], &[7][..]),
            (&[7], &long),
            (&long, &[]),
            (&[], &long),
        ] {
            let distances = Distances::new(left, right);
            assert!((499..=500).contains(&distances.total()));
            assert!(distances.edits(left).len() >= 500);
        }
    }
}
