//! Lengths of sentences, drawn with characters.

use std::fmt;

use serde::Serialize;

/// The widest bar, in characters.
const WIDTH: usize = 40;

/// How many sentences have which length. A bin has twice the lengths of the one before it, half of
/// the way: 1–2, 3–4, 5–8, 9–12, 13–16, 17–24 and so on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Histogram {
    /// The longest length of each bin.
    pub upto: Vec<usize>,
    /// The number of sentences in each bin.
    pub counts: Vec<u64>,
}

impl Histogram {
    pub(crate) fn of(lengths: impl Iterator<Item = usize>) -> Self {
        let mut histogram = Self::default();
        for length in lengths {
            while histogram.upto.last().is_none_or(|upto| *upto < length) {
                let next = next_bin(&histogram.upto);
                histogram.upto.push(next);
                histogram.counts.push(0);
            }
            let bin = histogram.upto.partition_point(|upto| *upto < length);
            histogram.counts[bin] += 1;
        }
        histogram
    }
}

/// The end of the bin after these: 2, 4, 8, 12, 16, 24, 32, 48, 64, …
fn next_bin(upto: &[usize]) -> usize {
    match upto.last() {
        None => 2,
        Some(2) => 4,
        Some(&last) if last.is_power_of_two() && last > 4 => last + last / 2,
        Some(12) => 16,
        Some(&last) => (last + 1).next_power_of_two(),
    }
}

impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let most = self.counts.iter().copied().max().unwrap_or(0).max(1);
        let mut from = 1;
        for (upto, count) in self.upto.iter().zip(&self.counts) {
            let width = (*count as f64 / most as f64 * WIDTH as f64).ceil() as usize;
            let range = format!("{from}–{upto}");
            writeln!(f, "    {range:>11}  {:<WIDTH$}  {count}", "▇".repeat(width))?;
            from = upto + 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_counted_in_its_bin() {
        let histogram = Histogram::of([1, 2, 3, 40, 41, 5, 8].into_iter());
        assert_eq!(histogram.upto, [2, 4, 8, 12, 16, 24, 32, 48]);
        assert_eq!(histogram.counts, [2, 1, 2, 0, 0, 0, 0, 2]);
        let drawn = histogram.to_string();
        assert!(drawn.contains("33–48  ▇▇▇"), "{drawn}");
        assert_eq!(drawn.lines().count(), 8);
        assert_eq!(Histogram::of([].into_iter()).to_string(), "");
    }
}
