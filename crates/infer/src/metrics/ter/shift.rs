use std::cmp::Reverse;
use std::ops::Range;

use super::distance::{Distances, Edit};

/// The limits of sacreBLEU: the words of a shift, how far it goes, and how many are tried for a sentence.
const LONGEST: usize = 10;
const FARTHEST: usize = 50;
const TRIED: usize = 1000;

/// The number of edits, shifts among them. As long as a shift of words that the hypothesis has in the wrong place
/// saves edits, the one that saves most is made.
pub(super) fn edits(hypothesis: &[u32], reference: &[u32]) -> u32 {
    if reference.is_empty() {
        return hypothesis.len() as u32;
    }
    let mut words = hypothesis.to_vec();
    let (mut shifts, mut tried) = (0, 0);
    loop {
        let distances = Distances::new(&words, reference);
        let best = best_shift(&words, reference, &distances, &mut tried);
        match best {
            Some((saved, shift)) if saved > 0 && tried < TRIED => {
                shift.apply(&mut words);
                shifts += 1;
            }
            _ => return shifts + distances.total(),
        }
    }
}

/// So many words, from one place to before another.
#[derive(Clone, Copy, Debug)]
struct Shift {
    start: usize,
    length: usize,
    target: usize,
}

/// Where the words of the reference are in the hypothesis, and which words need an edit.
struct Places {
    /// For each word of the reference, how many words of the hypothesis come before the place after it.
    after: Vec<usize>,
    reference_wrong: Vec<bool>,
    hypothesis_wrong: Vec<bool>,
}

/// The shift that saves most edits, and how many. Of equal ones, the longest, then the first in the hypothesis, then
/// the one to the first place.
fn best_shift(
    words: &[u32],
    reference: &[u32],
    distances: &Distances,
    tried: &mut usize,
) -> Option<(i64, Shift)> {
    let places = Places::new(&distances.edits(words));
    let mut best = None;
    let mut shifted = Vec::new();
    for start in 0..words.len() {
        let nearby = start.saturating_sub(FARTHEST)..reference.len().min(start + FARTHEST + 1);
        for place in nearby {
            let pairs = words[start..].iter().zip(&reference[place..]);
            let common = pairs.take(LONGEST).take_while(|(a, b)| a == b).count();
            for length in 1..=common {
                if !places.helps(start, place, length) {
                    continue;
                }
                for target in places.targets(place, length) {
                    let shift = Shift {
                        start,
                        length,
                        target,
                    };
                    shifted.clear();
                    shifted.extend_from_slice(words);
                    let changed = shift.apply(&mut shifted);
                    let total = distances.total_of(&shifted, changed);
                    let saved = i64::from(distances.total()) - i64::from(total);
                    *tried += 1;
                    let rank = (saved, length, Reverse(start), Reverse(target));
                    if best.as_ref().is_none_or(|(highest, _)| rank > *highest) {
                        best = Some((rank, shift));
                    }
                }
                if *tried >= TRIED {
                    return best.map(|((saved, ..), shift)| (saved, shift));
                }
            }
        }
    }
    best.map(|((saved, ..), shift)| (saved, shift))
}

impl Shift {
    /// Shifts the words, and returns the part that may have changed.
    fn apply(self, words: &mut [u32]) -> Range<usize> {
        let Self {
            start,
            length,
            target,
        } = self;
        if target < start {
            words[target..start + length].rotate_right(length);
            return target..start + length;
        }
        // A target within the shifted words moves them on by as much as it is after their start.
        let end = match target > start + length {
            true => target,
            false => words.len().min(target + length),
        };
        words[start..end].rotate_left(length);
        start..end
    }
}

impl Places {
    fn new(edits: &[Edit]) -> Self {
        let mut places = Self {
            after: Vec::new(),
            reference_wrong: Vec::new(),
            hypothesis_wrong: Vec::new(),
        };
        for edit in edits {
            let wrong = *edit != Edit::Keep;
            if *edit != Edit::Insert {
                places.hypothesis_wrong.push(wrong);
            }
            if *edit != Edit::Delete {
                places.reference_wrong.push(wrong);
                places.after.push(places.hypothesis_wrong.len());
            }
        }
        places
    }

    /// Whether a shift can help: some of the words are wrong where they are, some are missing where they should be,
    /// and that is not within them.
    fn helps(&self, start: usize, place: usize, length: usize) -> bool {
        let within = start + 1..start + length + 1;
        self.hypothesis_wrong[start..start + length].contains(&true)
            && self.reference_wrong[place..place + length].contains(&true)
            && !within.contains(&self.after[place])
    }

    /// Where the words can go: before their place in the reference, or after one of its words. Each once.
    fn targets(&self, place: usize, length: usize) -> impl Iterator<Item = usize> {
        let before = match place {
            0 => 0,
            _ => self.after[place - 1],
        };
        let mut last = None;
        std::iter::once(before)
            .chain(self.after[place..place + length].iter().copied())
            .filter(move |target| last.replace(*target) != Some(*target))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_is_one_edit() {
        assert_eq!(edits(&[3, 4, 1, 2], &[1, 2, 3, 4]), 1);
        assert_eq!(edits(&[1, 2, 3, 4], &[1, 2, 3, 4]), 0);
        assert_eq!(edits(&[1, 9, 3, 4], &[1, 2, 3, 4]), 1);
        assert_eq!(edits(&[], &[1, 2]), 2);
        assert_eq!(edits(&[1, 2], &[]), 2);
        assert_eq!(edits(&[], &[]), 0);
    }

    #[test]
    fn shifted_words_are_those_of_slices() {
        let words: Vec<u32> = (0..7).collect();
        for start in 0..7 {
            for length in 1..=7 - start {
                for target in 0..=7 {
                    let shift = Shift {
                        start,
                        length,
                        target,
                    };
                    let mut ours = words.clone();
                    let changed = shift.apply(&mut ours);
                    assert_eq!(ours, sliced(&words, shift), "{shift:?}");
                    for i in (0..7).filter(|i| !changed.contains(i)) {
                        assert_eq!(ours[i], words[i], "{shift:?}");
                    }
                }
            }
        }
    }

    /// The definition in sacreBLEU, in which the end of a slice may be past the end.
    fn sliced(words: &[u32], shift: Shift) -> Vec<u32> {
        let Shift {
            start,
            length,
            target,
        } = shift;
        let n = words.len();
        let moved = &words[start..start + length];
        let parts = if target < start {
            [
                &words[..target],
                moved,
                &words[target..start],
                &words[start + length..],
            ]
        } else if target > start + length {
            [
                &words[..start],
                &words[start + length..target],
                moved,
                &words[target..],
            ]
        } else {
            let end = n.min(length + target);
            let middle = start + length..end.max(start + length);
            [&words[..start], &words[middle], moved, &words[end..]]
        };
        parts.concat()
    }
}
