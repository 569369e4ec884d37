//! Arithmetic with the rounding of NumPy, on which it can depend whether a difference counts as one.

/// `left - right`, in 32 bits or in 64.
pub(super) fn minus(left: f64, right: f64, single: bool) -> f64 {
    match single {
        true => f64::from(left as f32 - right as f32),
        false => left - right,
    }
}

/// `numpy.mean` of an array of 32 or of 64 bits; 0 of an empty one.
pub(super) fn mean(values: &[f64], single: bool) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    match single {
        true => {
            let values: Vec<f32> = values.iter().map(|&value| value as f32).collect();
            f64::from(pairwise_sum(&values, 0.0) / values.len() as f32)
        }
        false => pairwise_sum(values, 0.0) / values.len() as f64,
    }
}

/// Halves of a long array are summed on their own; a short one is summed in eight parts.
fn pairwise_sum<F: Copy + std::ops::Add<Output = F>>(values: &[F], zero: F) -> F {
    const SHORT: usize = 128;
    let sum = |values: &[F]| values.iter().fold(zero, |sum, &value| sum + value);
    if values.len() < 8 {
        return sum(values);
    }
    if values.len() > SHORT {
        let half = values.len() / 2;
        let (left, right) = values.split_at(half - half % 8);
        return pairwise_sum(left, zero) + pairwise_sum(right, zero);
    }
    let (chunks, rest) = values.as_chunks::<8>();
    let parts = chunks.iter().skip(1).fold(chunks[0], |parts, chunk| {
        std::array::from_fn(|i| parts[i] + chunk[i])
    });
    let [a, b, c, d, e, f, g, h] = parts;
    let parts = ((a + b) + (c + d)) + ((e + f) + (g + h));
    rest.iter().fold(parts, |sum, &value| sum + value)
}

/// The mean with one rounding, almost always (Neumaier's sum); 0 of an empty array.
pub(super) fn exact_mean(values: &[f64]) -> f64 {
    let (mut sum, mut lost) = (0.0, 0.0);
    for &value in values {
        let next: f64 = sum + value;
        lost += match f64::abs(sum) >= value.abs() {
            true => (sum - next) + value,
            false => (value - next) + sum,
        };
        sum = next;
    }
    (sum + lost) / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::super::tests::golden;
    use super::*;

    #[test]
    fn means_have_the_bits_of_numpy() {
        let means = golden().means;
        assert!(means.len() > 5);
        for golden in means {
            let count = golden.values;
            // The same values are computed by the script: exact in both precisions.
            let value = |i: u32| f64::from(((i * 7919) % 10007) as f32 / 64.0 + i as f32 / 1024.0);
            let values: Vec<f64> = (0..count).map(value).collect();
            assert_eq!(mean(&values, true), golden.single, "{count} values");
            assert_eq!(mean(&values, false), golden.double, "{count} values");
            assert_eq!(exact_mean(&values), golden.exact, "{count} values");
        }
    }
}
