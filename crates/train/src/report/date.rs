/// Seconds since 1970-01-01 as "2026-11-18 16:05 UTC".
pub(super) fn describe(seconds: f64) -> String {
    let seconds = seconds.max(0.0) as u64;
    let (days, minutes) = (seconds / 86_400, seconds % 86_400 / 60);
    let (year, month, day) = civil(days);
    format!(
        "{year}-{month:02}-{day:02} {:02}:{:02} UTC",
        minutes / 60,
        minutes % 60
    )
}

/// The date of a day since 1970-01-01, in years that begin in March, so that a leap day is the last of its year
/// (Hinnant's algorithm).
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // since 0000-03-01
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let leaps = day_of_era / 1460 + day_of_era / 146_096;
    let year = (day_of_era + day_of_era / 36_524 - leaps) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = year + 400 * era + u64::from(month <= 2);
    (year, month, day)
}

/// A time in seconds as "3 h 05 min".
pub(super) fn duration(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match (whole / 3600, whole / 60) {
        (0, 0) => format!("{seconds:.1} s"),
        (0, minutes) => format!("{minutes} min {:02} s", whole % 60),
        (hours, minutes) => format!("{hours} h {:02} min", minutes % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0.0, "1970-01-01 00:00 UTC"),
            (951_782_400.0, "2000-02-29 00:00 UTC"),
            (951_868_800.0, "2000-03-01 00:00 UTC"),
            (1_709_164_799.0, "2024-02-28 23:59 UTC"),
            (1_795_006_463.287, "2026-11-18 12:54 UTC"),
            (4_107_542_400.0, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(describe(seconds), text);
        }
    }

    #[test]
    fn a_duration_has_two_units() {
        for (seconds, text) in [
            (2.25, "2.2 s"),
            (61.0, "1 min 01 s"),
            (11_100.0, "3 h 05 min"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }
}
