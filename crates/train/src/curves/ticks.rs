//! Round numbers along an axis, and how numbers are written.

/// A round number and its label.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: String,
}

/// Round numbers between two others, at equal distances: four to eight of them, in most cases.
pub(super) fn linear(low: f64, high: f64) -> Vec<Tick> {
    const MOST: usize = 12;
    let step = nice_step((high - low) / 3.0);
    if !step.is_finite() || step <= 0.0 {
        return Vec::new();
    }
    let first = (low / step - 1e-9).ceil();
    let values = (0..MOST).map(|index| (first + index as f64) * step);
    let ticks = values.take_while(|value| *value <= high + 1e-9 * step);
    let ticks = ticks.map(|value| Tick {
        value,
        label: label(value, step, high.abs().max(low.abs())),
    });
    ticks.collect()
}

/// Powers of ten between two positive numbers, with 2 and 5 times those if there are few of them.
pub(super) fn logarithmic(low: f64, high: f64) -> Vec<Tick> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let between = |factors: &[f64], every: i32| -> Vec<Tick> {
        let powers = (first..=last).filter(|power| power.rem_euclid(every) == 0);
        let values = powers.flat_map(|power| factors.iter().map(move |f| f * 10_f64.powi(power)));
        let within = values.filter(|v| *v >= low * 0.999 && *v <= high * 1.001);
        let ticks = within.map(|value| Tick {
            value,
            label: label(value, value, value),
        });
        ticks.collect()
    };
    match (high / low).log10() {
        decades if decades <= 2.0 => between(&[1.0, 2.0, 5.0], 1),
        decades => between(&[1.0], (decades / 5.0).ceil() as i32),
    }
}

/// The greatest of 1, 2, 2.5 and 5 times a power of ten that is not above this distance.
fn nice_step(distance: f64) -> f64 {
    let power = 10_f64.powf(distance.log10().floor());
    let factors = [5.0, 2.5, 2.0, 1.0];
    let enough = factors
        .into_iter()
        .find(|factor| factor * power <= distance * 1.001);
    enough.unwrap_or(1.0) * power
}

/// A multiple of a round step, as short as it can be: 0.25, 1500, 12.5k, 2M, 5e-5. `most` is the greatest of all.
fn label(value: f64, step: f64, most: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let units = [(1e9, 1e9, "B"), (1e6, 1e6, "M"), (1e4, 1e3, "k")];
    if let Some((_, unit, suffix)) = units.into_iter().find(|(from, ..)| most >= *from) {
        let text = fixed(value / unit, step / unit);
        return format!("{}{suffix}", trimmed(&text));
    }
    if step < 1e-3 * 0.999 {
        let power = value.abs().log10().floor() as i32;
        let scale = 10_f64.powi(power);
        let text = fixed(value / scale, step / scale);
        return format!("{}e{power}", trimmed(&text));
    }
    fixed(value, step)
}

/// A number without zeros at the end of its decimals.
fn trimmed(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

/// As many decimals as a step has.
fn fixed(value: f64, step: f64) -> String {
    let whole = |decimals: &i32| {
        let scaled = step * 10_f64.powi(*decimals);
        (scaled - scaled.round()).abs() < 1e-6 * scaled.max(1e-3)
    };
    let decimals = (0..6).find(whole).unwrap_or(6);
    format!("{value:.*}", decimals as usize)
}

/// A value to read: five significant digits, and whole numbers grouped.
pub(super) fn precise(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".into()
    } else if size >= 1e4 {
        grouped(value)
    } else if size < 1e-3 {
        format!("{value:.3e}")
    } else {
        let decimals = (4 - size.log10().floor() as i32).clamp(0, 6);
        let text = format!("{value:.*}", decimals as usize);
        trimmed(&text).to_string()
    }
}

/// A whole number with its digits in groups of three.
pub(crate) fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value <= -0.5 {
        format!("-{text}")
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: Vec<Tick>) -> Vec<String> {
        ticks.into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_are_round_and_their_labels_short() {
        for (low, high, expected) in [
            (0.0, 1600.0, &["0", "500", "1000", "1500"][..]),
            (0.0, 21_000.0, &["0", "5k", "10k", "15k", "20k"]),
            (0.0, 100_000.0, &["0", "25k", "50k", "75k", "100k"]),
            (0.0, 3_000_000.0, &["0", "1M", "2M", "3M"]),
            (0.0, 9_000.0, &["0", "2500", "5000", "7500"]),
            (11_000.0, 20_000.0, &["12.5k", "15k", "17.5k", "20k"]),
            (1.62, 7.9, &["2", "4", "6"]),
            (0.0, 0.002, &["0", "5e-4", "1e-3", "1.5e-3", "2e-3"]),
            (30.1, 30.9, &["30.25", "30.50", "30.75"]),
            (-1.0, 1.0, &["-1.0", "-0.5", "0", "0.5", "1.0"]),
        ] {
            assert_eq!(labels(linear(low, high)), expected, "{low} to {high}");
        }
    }

    #[test]
    fn ticks_lie_in_their_range_whatever_it_is() {
        for (low, high) in [(0.0, 1e-300), (1e300, 1.1e300), (-1e-9, 1e9), (5.0, 5.0)] {
            for tick in linear(low, high) {
                let slack = (high - low) * 1e-6;
                assert!(tick.value >= low - slack && tick.value <= high + slack);
            }
        }
        assert!(linear(f64::NAN, 1.0).is_empty());
    }

    #[test]
    fn logarithmic_ticks_are_powers_of_ten_or_parts_of_them() {
        assert_eq!(labels(logarithmic(0.9, 30.0)), ["1", "2", "5", "10", "20"]);
        assert_eq!(
            labels(logarithmic(1e-7, 1e-3)),
            ["1e-7", "1e-6", "1e-5", "1e-4", "0.001"]
        );
        assert!(logarithmic(1e-30, 1e30).len() < 8);
    }

    #[test]
    fn values_are_written_with_five_digits() {
        for (value, text) in [
            (0.0, "0"),
            (2.103_449, "2.1034"),
            (31.5, "31.5"),
            (123_456.7, "123,457"),
            (0.000_123_456, "1.235e-4"),
            (1000.0, "1000"),
            (-12_345.0, "-12,345"),
        ] {
            assert_eq!(precise(value), text);
        }
    }
}
