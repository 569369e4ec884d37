//! Loops that the compiler vectorises. Sums have a fixed number of lanes and a fixed order, so the bits
//! depend neither on the instruction set nor on the number of threads.

use rayon::prelude::*;

use crate::gemm::Write;
use crate::isa::kernel;

/// Rows per task of a row-wise kernel.
pub(crate) const TASK_ROWS: usize = 64;

/// exp(x) with a relative error below 3e-7, without branches. The polynomial is from Cephes.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0; // 1.5 · 2^23: adding it rounds to a whole number
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = x - n * 0.693_359_4;
    let r = r + n * 2.121_944_4e-4;
    let p = 1.987_569_1e-4 * r + 1.398_2e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 0.5;
    let p = p * (r * r) + (r + 1.0);
    p * f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000))
}

#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// tanh(x) with a relative error below 3e-7, without branches. The polynomial near zero is from Cephes.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    let square = x * x;
    let p = -5.704_988_7e-3 * square + 2.063_909e-2;
    let p = p * square - 5.373_971_6e-2;
    let p = p * square + 1.333_144_2e-1;
    let p = p * square - 3.333_328e-1;
    let near = p * square * x + x;
    let far = 1.0 - 2.0 / (exp(2.0 * x.abs()) + 1.0);
    if x.abs() > 0.625 {
        far.copysign(x)
    } else {
        near
    }
}

pub(crate) const LANES: usize = 16;

/// Combines the lanes pairwise, which has shorter dependency chains than one after the other.
#[inline(always)]
pub(crate) fn reduce(mut lanes: [f32; LANES], f: impl Fn(f32, f32) -> f32) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for j in 0..half {
            lanes[j] = f(lanes[j], lanes[j + half]);
        }
        half /= 2;
    }
    lanes[0]
}

#[inline(always)]
pub(crate) fn higher(a: f32, b: f32) -> f32 {
    if b > a { b } else { a }
}

#[inline(always)]
fn fold(x: &[f32], start: f32, f: impl Fn(f32, f32) -> f32) -> f32 {
    reduce(lanes(x, start, &f), f)
}

#[inline(always)]
fn lanes(x: &[f32], start: f32, f: impl Fn(f32, f32) -> f32) -> [f32; LANES] {
    let mut lanes = [start; LANES];
    let chunks = x.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane = f(*lane, value);
        }
    }
    for (lane, &value) in lanes.iter_mut().zip(rest) {
        *lane = f(*lane, value);
    }
    lanes
}

#[inline(always)]
pub(crate) fn sum(x: &[f32]) -> f32 {
    fold(x, 0.0, |a, b| a + b)
}

#[inline(always)]
pub(crate) fn max(x: &[f32]) -> f32 {
    fold(x, f32::NEG_INFINITY, higher)
}

/// x becomes exp((x - highest) · scale); returns the sum.
#[inline(always)]
pub(crate) fn exp_and_sum(x: &mut [f32], highest: f32, scale: f32) -> f32 {
    let mut sums = [0.0; LANES];
    let (chunks, rest) = x.as_chunks_mut::<LANES>();
    for values in chunks {
        for (sum, value) in sums.iter_mut().zip(values) {
            *value = exp((*value - highest) * scale);
            *sum += *value;
        }
    }
    for (sum, value) in sums.iter_mut().zip(rest) {
        *value = exp((*value - highest) * scale);
        *sum += *value;
    }
    reduce(sums, |a, b| a + b)
}

#[inline(always)]
pub(crate) fn dot(x: &[f32], y: &[f32]) -> f32 {
    let mut lanes = [0.0; LANES];
    let (xs, ys) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
    let (x_rest, y_rest) = (xs.remainder(), ys.remainder());
    for (x, y) in xs.zip(ys) {
        for (lane, (x, y)) in lanes.iter_mut().zip(x.iter().zip(y)) {
            *lane += x * y;
        }
    }
    for (lane, (x, y)) in lanes.iter_mut().zip(x_rest.iter().zip(y_rest)) {
        *lane += x * y;
    }
    reduce(lanes, |a, b| a + b)
}

kernel! {
    /// log Σ exp(x), which normalises logits to log-probabilities. Non-finite if an x is NaN or +∞, or if all are -∞.
    pub fn log_sum_exp(x: &[f32]) -> f64 {
        let highest = max(x);
        let lanes = lanes(x, 0.0, |sum, x| sum + exp(x - highest));
        f64::from(highest) + lanes.into_iter().map(f64::from).sum::<f64>().ln()
    }
}

/// dst (=|+=) the column sums of `[n, width]`. Each stripe of columns is one task.
pub(crate) fn column_sums(x: &[f32], width: usize, dst: &mut [f32], write: Write) {
    const STRIPE: usize = 64;
    dst.par_chunks_mut(STRIPE).enumerate().for_each(|(i, dst)| {
        if write == Write::Over {
            dst.fill(0.0);
        }
        stripe_sums(x, width, i * STRIPE, dst);
    });
}

kernel! {
    fn stripe_sums(x: &[f32], width: usize, first: usize, dst: &mut [f32]) {
        for row in x.chunks_exact(width) {
            for (sum, value) in dst.iter_mut().zip(&row[first..]) {
                *sum += value;
            }
        }
    }
}

/// dst (=|+=) factor · x.
pub(crate) fn add_scaled(dst: &mut [f32], write: Write, factor: f32, x: &[f32]) {
    const CHUNK: usize = 1 << 14;
    let chunks = dst.par_chunks_mut(CHUNK).zip(x.par_chunks(CHUNK));
    chunks.for_each(|(dst, x)| match write {
        Write::Over => dst.iter_mut().zip(x).for_each(|(d, x)| *d = factor * x),
        Write::Add => dst.iter_mut().zip(x).for_each(|(d, x)| *d += factor * x),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_has_a_relative_error_below_3e_7() {
        for i in -8700..8800 {
            let x = i as f32 * 0.01;
            let error = f64::from(exp(x)) / f64::from(x).exp() - 1.0;
            assert!(error.abs() < 3e-7, "exp({x}) is off by {error:e}");
        }
    }

    #[test]
    fn tanh_has_a_relative_error_below_3e_7() {
        for i in -200_000..=200_000 {
            let x = i as f32 * 1e-4;
            let exact = f64::from(x).tanh();
            let error = (f64::from(tanh(x)) - exact).abs();
            assert!(error <= 3e-7 * exact.abs(), "tanh({x})");
        }
        let far = [f32::INFINITY, 100.0, 44.1, -44.1, f32::NEG_INFINITY];
        assert_eq!(far.map(tanh), [1.0, 1.0, 1.0, -1.0, -1.0]);
        assert!(tanh(f32::NAN).is_nan());
    }

    #[test]
    fn log_sum_exp_is_accurate_and_propagates_non_finite_values() {
        for n in [1, 2, 15, 16, 17, 1000] {
            for shift in [0.0, 1e4, -1e4] {
                let x: Vec<f32> = (0..n)
                    .map(|i| ((i * 37) % 101) as f32 / 8.0 + shift)
                    .collect();
                let sum: f64 = x.iter().map(|&x| f64::from(x - shift).exp()).sum();
                let error = log_sum_exp(&x) - f64::from(shift) - sum.ln();
                assert!(error.abs() < 1e-3, "{n} {shift}: {error:e}");
            }
        }
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        for x in [[nan, 0.0], [0.0, nan], [inf, 0.0], [-inf, -inf], [nan, nan]] {
            assert!(!log_sum_exp(&x).is_finite(), "{x:?}");
        }
        assert!((log_sum_exp(&[-inf, 2.0]) - 2.0).abs() < 1e-6);
    }

    #[test]
    fn sums_and_maxima_cover_every_element_of_odd_lengths() {
        for n in [0, 1, 15, 16, 17, 100, 513] {
            let x: Vec<f32> = (0..n).map(|i| (i as f32 * 0.7).sin()).collect();
            let exact: f64 = x.iter().copied().map(f64::from).sum();
            let squares: f64 = x.iter().map(|&x| f64::from(x).powi(2)).sum();
            assert!((f64::from(sum(&x)) - exact).abs() < 1e-4);
            assert!((f64::from(dot(&x, &x)) - squares).abs() < 1e-4);
            assert_eq!(max(&x), x.iter().copied().fold(f32::NEG_INFINITY, f32::max));
        }
    }

    #[test]
    fn column_sums_add_or_replace() {
        let x: Vec<f32> = (0..7 * 130).map(|i| i as f32).collect();
        let mut dst = vec![1.0; 130];
        column_sums(&x, 130, &mut dst, Write::Add);
        column_sums(&x, 130, &mut dst, Write::Over);
        for (j, sum) in dst.iter().enumerate() {
            assert_eq!(*sum, (0..7).map(|i| (i * 130 + j) as f32).sum::<f32>());
        }
    }
}
