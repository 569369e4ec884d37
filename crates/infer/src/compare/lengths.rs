use serde::Serialize;

use super::TestSet;
use crate::metrics::Tally;

/// The most rows of the table.
const MOST: usize = 8;

/// Scores of sentences by their length.
#[derive(Clone, Debug, Serialize)]
pub struct ByLength {
    pub of: Side,
    pub unit: Unit,
    pub buckets: Vec<Bucket>,
}

/// The text that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    Source,
    /// The first one.
    Reference,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    Words,
    /// For text without spaces between words.
    Characters,
}

/// Sentences of similar length.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bucket {
    pub from: usize,
    /// The last length; none for all longer ones.
    pub to: Option<usize>,
    pub sentences: usize,
    /// For each system, the score by each metric of these sentences as a corpus.
    pub scores: Vec<Vec<f64>>,
}

impl ByLength {
    pub(super) fn new(test_set: &TestSet, tallies: &[Vec<Tally>]) -> Self {
        let (of, lines) = match &test_set.source {
            Some(source) => (Side::Source, Some(source)),
            None => (Side::Reference, test_set.references.first()),
        };
        let lines = lines.map_or(&[][..], Vec::as_slice);
        let unit = Unit::of(lines);
        let lengths: Vec<usize> = lines.iter().map(|line| unit.measure(line)).collect();
        let mut buckets = Vec::new();
        for (from, to) in ranges(&lengths) {
            let within = |length: usize| from <= length && to.is_none_or(|to| length <= to);
            let lines = (0..lengths.len()).filter(|&line| within(lengths[line]));
            let lines: Vec<usize> = lines.collect();
            if lines.is_empty() {
                continue;
            }
            let score = |tally: &Tally| tally.score_of(lines.iter().copied());
            let system = |tallies: &Vec<Tally>| tallies.iter().map(score).collect();
            buckets.push(Bucket {
                from,
                to,
                sentences: lines.len(),
                scores: tallies.iter().map(system).collect(),
            });
        }
        Self { of, unit, buckets }
    }

    /// What is measured: `words of the source`.
    pub(super) fn measure(&self) -> &'static str {
        match (self.unit, self.of) {
            (Unit::Words, Side::Source) => "words of the source",
            (Unit::Words, Side::Reference) => "words of the first reference",
            (Unit::Characters, Side::Source) => "characters of the source",
            (Unit::Characters, Side::Reference) => "characters of the first reference",
        }
    }
}

impl Bucket {
    /// `1–10`, or `51+`.
    pub(super) fn label(&self) -> String {
        match self.to {
            Some(to) if to == self.from => to.to_string(),
            Some(to) => format!("{}–{to}", self.from),
            None => format!("{}+", self.from),
        }
    }
}

impl Unit {
    /// Characters, if most lines that are long enough for several words have no space.
    fn of(lines: &[String]) -> Self {
        let long = lines.iter().filter(|line| line.chars().count() > 8);
        let long: Vec<&String> = long.collect();
        let single = long
            .iter()
            .filter(|line| line.split_whitespace().count() < 2);
        match 2 * single.count() > long.len() {
            true => Self::Characters,
            false => Self::Words,
        }
    }

    fn measure(self, line: &str) -> usize {
        match self {
            Self::Words => line.split_whitespace().count(),
            Self::Characters => line.chars().filter(|c| !c.is_whitespace()).count(),
        }
    }
}

/// Ranges of equal width from the shortest length on, so few that almost all sentences are in the first ones, and
/// one for all longer ones. Lines without a word have a range of their own.
fn ranges(lengths: &[usize]) -> Vec<(usize, Option<usize>)> {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    let Some(&longest) = sorted.last() else {
        return Vec::new();
    };
    let most = sorted[(sorted.len() * 39 / 40).min(sorted.len() - 1)];
    let widths = (0..).flat_map(|power| [5, 10, 20].map(|width| width * 10usize.pow(power)));
    let width = widths
        .take(18)
        .find(|width| most.div_ceil(*width) < MOST)
        .unwrap_or(longest.max(1));
    let last = most.div_ceil(width).max(1);
    let closed = (0..last).map(|i| (i * width + 1, Some((i + 1) * width)));
    let mut ranges = vec![(0, Some(0))];
    ranges.extend(closed);
    if longest > last * width {
        ranges.push((last * width + 1, None));
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_every_length_once() {
        let one_to = |n: usize| (1..=n).collect::<Vec<_>>();
        let mut outlier = one_to(30);
        outlier.push(100_000);
        for lengths in [
            vec![0],
            vec![1],
            one_to(30),
            one_to(500),
            vec![7; 50],
            outlier,
        ] {
            let ranges = ranges(&lengths);
            assert!(ranges.len() <= MOST + 2, "{ranges:?}");
            for length in lengths {
                let within = |(from, to): &&(usize, Option<usize>)| {
                    *from <= length && to.is_none_or(|to| length <= to)
                };
                assert_eq!(
                    ranges.iter().filter(within).count(),
                    1,
                    "{length}: {ranges:?}"
                );
            }
        }
        assert!(ranges(&[]).is_empty());
    }

    #[test]
    fn text_without_spaces_is_measured_in_characters() {
        let lines = |lines: &[&str]| lines.iter().map(|l| l.to_string()).collect::<Vec<_>>();
        assert_eq!(
            Unit::of(&lines(&["他们昨天看见一座很长的桥。", "好"])),
            Unit::Characters
        );
        assert_eq!(
            Unit::of(&lines(&[
                "a dog runs home",
                "internationalisation",
                "a b c d e"
            ])),
            Unit::Words
        );
        assert_eq!(Unit::of(&lines(&["yes", "no", ""])), Unit::Words);
    }
}
