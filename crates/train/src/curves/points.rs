//! Many points as few, and noisy ones as a smooth line.

/// A value and where it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// At most about `most` points that look the same as all: of each column, the first, the last, the lowest and the
/// highest.
pub(super) fn thin(points: &[Point], most: usize) -> Vec<Point> {
    if points.len() <= most {
        return points.to_vec();
    }
    let columns = (most / 4).max(1);
    let chunk = points.len().div_ceil(columns);
    let mut kept = Vec::with_capacity(most);
    for column in points.chunks(chunk) {
        let by_value = |a: &usize, b: &usize| column[*a].y.total_cmp(&column[*b].y);
        let lowest = (0..column.len()).min_by(by_value).unwrap_or(0);
        let highest = (0..column.len()).max_by(by_value).unwrap_or(0);
        let mut chosen = [0, lowest, highest, column.len() - 1].to_vec();
        chosen.sort_unstable();
        chosen.dedup();
        kept.extend(chosen.into_iter().map(|index| column[index]));
    }
    kept
}

/// The fewest points that are smoothed.
const FEWEST: usize = 50;
/// How far points must be from the smooth line on average to be called noisy, as a share of their range.
const NOISY: f64 = 0.004;

/// A smooth line through noisy points. `None` if they are few, or are smooth already.
pub(super) fn smooth(points: &[Point]) -> Option<Vec<Point>> {
    if points.len() < FEWEST {
        return None;
    }
    let half = (points.len() / 60).clamp(1, 500);
    let values: Vec<f64> = points.iter().map(|point| point.y).collect();
    // Twice the mean over a window weighs near points more than far ones.
    let smoothed = mean_around(&mean_around(&values, half), half);
    let (low, high) = range(&values);
    let apart = values.iter().zip(&smoothed).map(|(a, b)| (a - b).abs());
    let apart = apart.sum::<f64>() / values.len() as f64;
    let noisy = apart > NOISY * (high - low);
    let line = points.iter().zip(smoothed);
    noisy.then(|| line.map(|(point, y)| Point { x: point.x, y }).collect())
}

/// The mean of each value and up to `half` on each side of it. At the start, where curves are steep, it has as many on
/// the one side as on the other, so that a slope stays where it is. At the end, where they are flat, it has as many as
/// there are, so that the last value alone does not decide where the line ends.
fn mean_around(values: &[f64], half: usize) -> Vec<f64> {
    let mean = |index: usize| {
        let half = half.min(index);
        let (start, end) = (index - half, (index + half + 1).min(values.len()));
        // Not from the sums up to here: after one huge value, their differences are only rounding.
        let share = 1.0 / (end - start) as f64;
        values[start..end].iter().map(|value| value * share).sum()
    };
    (0..values.len()).map(mean).collect()
}

/// The lowest and the highest value.
pub(super) fn range(values: &[f64]) -> (f64, f64) {
    let start = (f64::INFINITY, f64::NEG_INFINITY);
    values.iter().fold(start, |(low, high), &value| {
        (low.min(value), high.max(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: impl IntoIterator<Item = f64>) -> Vec<Point> {
        let points = values.into_iter().zip(0..);
        points.map(|(y, x)| Point { x: f64::from(x), y }).collect()
    }

    #[test]
    fn few_points_stay_and_many_keep_their_extremes_and_ends() {
        let few = points([3.0, 1.0, 2.0]);
        assert_eq!(thin(&few, 100), few);
        let mut values: Vec<f64> = (0..100_000).map(|i| f64::from(i % 7)).collect();
        (values[51_234], values[77_777]) = (99.0, -99.0);
        let many = points(values);
        let thinned = thin(&many, 800);
        assert!(thinned.len() <= 800, "{}", thinned.len());
        for index in [0, 51_234, 77_777, 99_999] {
            assert!(thinned.contains(&many[index]), "{index}");
        }
        assert!(thinned.is_sorted_by(|a, b| a.x < b.x));
    }

    #[test]
    fn a_straight_line_is_not_smoothed_and_a_noisy_one_becomes_straight() {
        let line = points((0..200).map(f64::from));
        assert_eq!(smooth(&line), None);
        let noise = |i: i32| if i % 2 == 0 { 10.0 } else { -10.0 };
        let noisy = points((0..200).map(|i| f64::from(i) + noise(i)));
        let smoothed = smooth(&noisy).unwrap();
        for (point, index) in smoothed[3..197].iter().zip(3..) {
            assert!((point.y - f64::from(index)).abs() < 4.0, "{point:?}");
        }
        assert_eq!(smooth(&points([1.0, 9.0, 1.0])), None, "few points");
        let mut values: Vec<f64> = (0..100).map(|i| 1.0 + noise(i) / 100.0).collect();
        values[20] = 1e17;
        let spiked = smooth(&points(values)).unwrap();
        assert!(spiked[30..].iter().all(|point| (point.y - 1.0).abs() < 0.1));
    }
}
