//! The softmax of one row of scores, with its mask and its dropout.

use crate::random::Dropout;
use crate::simd;

/// What a row of scores needs to become weights: weight = exp((score - highest) · scale) · inverse.
#[derive(Clone, Copy, Default)]
pub(crate) struct Softmax {
    highest: f32,
    inverse: f32,
}

/// Scores to dropped weights, in place.
#[multiversion::multiversion(targets("x86_64+avx2+fma"))]
pub(super) fn softmax_row(
    row: &mut [f32],
    visible: usize,
    scale: f32,
    dropout: Dropout,
) -> Softmax {
    let (row, hidden) = row.split_at_mut(visible);
    hidden.fill(0.0);
    if row.is_empty() {
        return Softmax::default();
    }
    let highest = simd::max(row);
    let inverse = 1.0 / simd::exp_and_sum(row, highest, scale);
    if dropout.is_none() {
        row.iter_mut().for_each(|x| *x *= inverse);
    } else {
        let values = row.iter_mut().enumerate();
        values.for_each(|(j, x)| *x *= inverse * dropout.factor(j as u32));
    }
    Softmax { highest, inverse }
}

/// With weights a, factors f of the dropout and slopes g = dy vᵀ:  `weights` becomes a f, and
/// `slopes` becomes a (f g - Σ a f g) · scale, the gradient of the scores.
#[multiversion::multiversion(targets("x86_64+avx2+fma"))]
pub(super) fn softmax_row_backward(
    weights: &mut [f32],
    slopes: &mut [f32],
    visible: usize,
    (softmax, scale): (Softmax, f32),
    dropout: Dropout,
) {
    let Softmax { highest, inverse } = softmax;
    let (weights, hidden) = weights.split_at_mut(visible);
    hidden.fill(0.0);
    let (slopes, hidden) = slopes.split_at_mut(visible);
    hidden.fill(0.0);
    weights
        .iter_mut()
        .for_each(|x| *x = simd::exp((*x - highest) * scale) * inverse);
    if dropout.is_none() {
        let mean = simd::dot(weights, slopes);
        for (weight, slope) in weights.iter().zip(slopes) {
            *slope = weight * (*slope - mean) * scale;
        }
        return;
    }
    for (j, slope) in slopes.iter_mut().enumerate() {
        *slope *= dropout.factor(j as u32);
    }
    let mean = simd::dot(weights, slopes);
    for (j, (weight, slope)) in weights.iter_mut().zip(slopes).enumerate() {
        *slope = *weight * (*slope - mean) * scale;
        *weight *= dropout.factor(j as u32);
    }
}
