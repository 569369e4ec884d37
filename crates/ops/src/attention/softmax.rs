//! The softmax of one row of scores, with its mask and its dropout.

use crate::isa::kernel;
use crate::random::Dropout;
use crate::simd;

/// Turns a row of scores into weights: weight = exp((score - highest) · scale) · inverse.
#[derive(Clone, Copy, Default)]
pub(crate) struct Softmax {
    highest: f32,
    inverse: f32,
}

/// The width of a row of scores is a multiple of this, so that loops over it have no remainder.
pub(super) const LANES: usize = simd::LANES;

kernel! {
    /// Scores to weights with dropout, in place. Those from `visible` on become zero.
    pub(super) fn softmax_row(
        row: &mut [f32],
        visible: usize,
        scale: f32,
        dropout: Dropout,
    ) -> Softmax {
        if visible == 0 {
            row.fill(0.0);
            return Softmax::default();
        }
        debug_assert!(row.len().is_multiple_of(LANES));
        let end = visible as u32;
        let mut highest = [f32::NEG_INFINITY; LANES];
        let (row, _) = row.as_chunks_mut::<LANES>();
        for (i, values) in row.iter().enumerate() {
            for j in 0..LANES {
                let higher = (((i * LANES + j) as u32) < end) & (values[j] > highest[j]);
                highest[j] = if higher { values[j] } else { highest[j] };
            }
        }
        let highest = simd::reduce(highest, simd::higher);
        let mut sums = [0.0; LANES];
        for (i, values) in row.iter_mut().enumerate() {
            for j in 0..LANES {
                let value = simd::exp((values[j] - highest) * scale);
                values[j] = if ((i * LANES + j) as u32) < end {
                    value
                } else {
                    0.0
                };
                sums[j] += values[j];
            }
        }
        let inverse = 1.0 / simd::reduce(sums, |a, b| a + b);
        for (i, values) in row.iter_mut().enumerate() {
            for (j, value) in values.iter_mut().enumerate() {
                *value *= inverse * dropout.factor((i * LANES + j) as u32);
            }
        }
        Softmax { highest, inverse }
    }
}

kernel! {
    /// With weights a, dropout factors f and slopes g = dy vᵀ:  `weights` becomes a f, and
    /// `slopes` becomes a (f g - Σ a f g) · scale, the gradient of the scores. Both are zero from `visible` on.
    pub(super) fn softmax_row_backward(
        weights: &mut [f32],
        slopes: &mut [f32],
        visible: usize,
        softmax: Softmax,
        scale: f32,
        dropout: Dropout,
    ) {
        let Softmax { highest, inverse } = softmax;
        let (end, mut sums) = (visible as u32, [0.0; LANES]);
        let (weights, _) = weights.as_chunks_mut::<LANES>();
        let (slopes, _) = slopes.as_chunks_mut::<LANES>();
        for (i, (weights, slopes)) in weights.iter_mut().zip(&mut *slopes).enumerate() {
            for j in 0..LANES {
                let number = (i * LANES + j) as u32;
                let weight = simd::exp((weights[j] - highest) * scale) * inverse;
                weights[j] = if number < end { weight } else { 0.0 };
                let slope = slopes[j] * dropout.factor(number);
                slopes[j] = if number < end { slope } else { 0.0 };
                sums[j] += weights[j] * slopes[j];
            }
        }
        let mean = simd::reduce(sums, |a, b| a + b);
        for (i, (weights, slopes)) in weights.iter_mut().zip(slopes).enumerate() {
            for j in 0..LANES {
                let number = (i * LANES + j) as u32;
                let slope = weights[j] * (slopes[j] - mean) * scale;
                slopes[j] = if number < end { slope } else { 0.0 };
                weights[j] *= dropout.factor(number);
            }
        }
    }
}
