use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number of bytes, written as "6G", "1.5G" or "800M" in configs; 1K is 1,024 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct MemorySize(pub u64);

const UNITS: [(char, u64); 4] = [
    ('T', 1 << 40),
    ('G', 1 << 30),
    ('M', 1 << 20),
    ('K', 1 << 10),
];

impl MemorySize {
    /// The size to about two digits, for people: "24.6G", "850M".
    pub(crate) fn rounded(self) -> String {
        let unit = UNITS.iter().find(|(_, size)| self.0 >= *size);
        let (letter, size) = unit.unwrap_or(&('K', 1 << 10));
        let number = self.0 as f64 / *size as f64;
        let decimals = usize::from(number < 99.95);
        format!("{number:.decimals$}{letter}")
    }
}

impl FromStr for MemorySize {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let wrong =
            || format!("{text:?} is not an amount of memory; write it as \"6G\" or \"800M\"");
        let upper = text.trim().to_ascii_uppercase();
        let short = upper.strip_suffix("IB").or(upper.strip_suffix('B'));
        let short = short.unwrap_or(&upper);
        let unit = UNITS.iter().find(|(letter, _)| short.ends_with(*letter));
        let (number, factor) = match unit {
            Some((letter, factor)) => (short.trim_end_matches(*letter), *factor),
            None => (short, 1),
        };
        let number: f64 = number.trim().parse().map_err(|_| wrong())?;
        let bytes = number * factor as f64;
        if bytes >= 1.0 && bytes < 2f64.powi(63) {
            Ok(Self(bytes as u64))
        } else {
            Err(wrong())
        }
    }
}

impl TryFrom<String> for MemorySize {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        text.parse()
    }
}

impl From<MemorySize> for String {
    fn from(size: MemorySize) -> Self {
        size.to_string()
    }
}

impl fmt::Display for MemorySize {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        // The largest unit that gives the same number back.
        let exact = |size: &&(char, u64)| (self.0 as f64 / size.1 as f64 * 100.0).fract() == 0.0;
        let unit = UNITS.iter().filter(|(_, size)| self.0 >= *size).find(exact);
        match unit {
            Some((letter, size)) => write!(f, "{}{letter}", self.0 as f64 / *size as f64),
            None => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_memory_are_read_as_people_write_them_and_print_as_they_are_read() {
        for (text, bytes, printed) in [
            ("6G", 6 << 30, "6G"),
            ("6 GiB", 6 << 30, "6G"),
            ("1.5g", 3 << 29, "1.5G"),
            ("800MB", 800 << 20, "800M"),
            ("1000", 1000, "1000"),
            ("123456789", 123456789, "123456789"),
        ] {
            let size: MemorySize = text.parse().unwrap();
            assert_eq!((size.0, size.to_string()), (bytes, printed.to_string()));
            assert_eq!(printed.parse(), Ok(size));
        }
        for (bytes, rounded) in [
            (0, "0.0K"),
            (850 << 20, "850M"),
            (3 << 29, "1.5G"),
            (u64::MAX, "16777216T"),
        ] {
            assert_eq!(MemorySize(bytes).rounded(), rounded);
        }
        for text in ["", "G", "six", "-1G", "0", "1e300G", "NaN"] {
            assert!(text.parse::<MemorySize>().is_err(), "{text}");
        }
    }
}
