//! How many pairs were kept and dropped.

use super::Reason;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::iter::Sum;
use std::ops::AddAssign;

/// How many pairs were read, kept, and dropped for each reason. It is written as
/// `{"read": 12, "kept": 9, "dropped": {"empty": 2, "too_long": 1}}`, without zeros in `dropped`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Counts {
    /// Pairs that were read. [`Counts::keep`] and [`Counts::drop`] count them.
    pub read: u64,
    /// Pairs that were kept.
    pub kept: u64,
    dropped: [u64; Reason::ALL.len()], // in the order of Reason::ALL
}

impl Counts {
    /// Counts a pair that is kept.
    pub fn keep(&mut self) {
        self.read += 1;
        self.kept += 1;
    }

    /// Counts a pair that is dropped.
    pub fn drop(&mut self, reason: Reason) {
        self.read += 1;
        self.dropped[index(reason)] += 1;
    }

    /// Pairs that were dropped for this reason.
    pub fn dropped(&self, reason: Reason) -> u64 {
        self.dropped[index(reason)]
    }

    /// Pairs that were dropped for any reason.
    pub fn total_dropped(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// The reasons for which pairs were dropped, and how many.
    pub fn reasons(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        let all = Reason::ALL.into_iter().zip(self.dropped);
        all.filter(|(_, count)| *count > 0)
    }
}

fn index(reason: Reason) -> usize {
    usize::from(reason.code()) - 1
}

/// One line, such as "kept 9 of 12 pairs; dropped 2 empty, 1 longer than data.max_length".
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let pairs = if self.read == 1 { "pair" } else { "pairs" };
        write!(f, "kept {} of {} {pairs}", self.kept, self.read)?;
        let mut before = "; dropped";
        for (reason, count) in self.reasons() {
            write!(f, "{before} {count} {reason}")?;
            before = ",";
        }
        Ok(())
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.read += other.read;
        self.kept += other.kept;
        for (count, more) in self.dropped.iter_mut().zip(other.dropped) {
            *count += more;
        }
    }
}

impl Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |mut sum, more| {
            sum += more;
            sum
        })
    }
}

/// The form in files.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    read: u64,
    kept: u64,
    #[serde(default)]
    dropped: BTreeMap<Reason, u64>,
}

impl From<Counts> for Written {
    fn from(counts: Counts) -> Self {
        Self {
            read: counts.read,
            kept: counts.kept,
            dropped: counts.reasons().collect(),
        }
    }
}

impl From<Written> for Counts {
    fn from(written: Written) -> Self {
        let mut counts = Self {
            read: written.read,
            kept: written.kept,
            ..Self::default()
        };
        for (reason, count) in written.dropped {
            counts.dropped[index(reason)] = count;
        }
        counts
    }
}
