use std::time::Duration;

use crate::{Error, Result};

const VARIABLE: &str = "ATTEND_RANK_TIMEOUT";
const DEFAULT: Duration = Duration::from_secs(40);
/// In seconds. Heartbeats are half a second apart.
const LEAST: u64 = 2;

/// How long a rank may be silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timeout(pub(crate) Duration);

impl Timeout {
    /// What the environment says.
    pub(crate) fn of(lookup: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let Some(value) = lookup(VARIABLE) else {
            return Ok(Self(DEFAULT));
        };
        match value.trim().parse() {
            Ok(seconds) if seconds >= LEAST => Ok(Self(Duration::from_secs(seconds))),
            _ => Err(Error::Environment {
                variable: VARIABLE,
                value,
                expected: "a number of seconds from 2",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_changes_the_timeout() {
        let timeout = |value: Option<&str>| Timeout::of(|_| value.map(String::from));
        assert_eq!(timeout(None), Ok(Timeout(DEFAULT)));
        assert_eq!(timeout(Some("2")), Ok(Timeout(Duration::from_secs(2))));
        for value in ["", "1", "-3", "2.5", "soon"] {
            let timeout = timeout(Some(value));
            assert!(matches!(timeout, Err(Error::Environment { .. })), "{value}");
        }
    }
}
