//! Attention of single queries to keys and values that lie anywhere.

use rayon::prelude::*;

use super::SourceWeights;
use crate::buffer::Buffer;
use crate::isa::kernel;
use crate::simd;

/// Rows of a task.
const TASK_ROWS: usize = 4;
/// Fewer multiplications than this run on one thread.
const SMALL: usize = 1 << 16;

/// The contexts `[rows, d]` of queries `d` wide. `keys(row)` are the keys and values that a row attends to, `2d`
/// each. Writes the weights of every head if asked to.
pub(super) fn attend<'a>(
    queries: Vec<&[f32]>,
    keys: impl Fn(usize) -> Vec<&'a [f32]> + Sync,
    heads: usize,
    weights: Option<&mut SourceWeights>,
) -> Buffer {
    let (rows, d) = (
        queries.len(),
        queries.first().map_or(1, |query| query.len()),
    );
    let mut contexts = Buffer::any(rows * d);
    if let Some(weights) = weights {
        let width = weights.keys;
        for (row, (query, context)) in queries.iter().zip(contexts.chunks_exact_mut(d)).enumerate()
        {
            let keys = keys(row);
            let mut scores = vec![0.0; heads * keys.len()];
            attend_row(query, &keys, heads, &mut scores, context);
            for (head, scores) in scores.chunks_exact(keys.len().max(1)).enumerate() {
                let to = &mut weights.values[(head * rows + row) * width..][..keys.len()];
                to.copy_from_slice(scores);
            }
        }
        return contexts;
    }
    let run = |(task, contexts): (usize, &mut [f32])| {
        let mut scores = Vec::new();
        for (i, context) in contexts.chunks_exact_mut(d).enumerate() {
            let row = task * TASK_ROWS + i;
            let keys = keys(row);
            scores.resize(heads * keys.len(), 0.0);
            attend_row(queries[row], &keys, heads, &mut scores, context);
        }
    };
    // The first row is the oldest, and has about as many keys as any.
    let most = if rows > 1 { keys(0).len() } else { 0 };
    if rows * most * d < SMALL {
        contexts.chunks_mut(TASK_ROWS * d).enumerate().for_each(run);
    } else {
        contexts
            .par_chunks_mut(TASK_ROWS * d)
            .enumerate()
            .for_each(run);
    }
    contexts
}

kernel! {
    /// One query `d` wide. Its weights are left in `scores`, `[heads, keys]`.
    fn attend_row(
        query: &[f32],
        keys: &[&[f32]],
        heads: usize,
        scores: &mut [f32],
        context: &mut [f32],
    ) {
        Avx512 => attend_to::<true>(query, keys, heads, scores, context),
        Avx2 => attend_to::<true>(query, keys, heads, scores, context),
        Neon => attend_to::<true>(query, keys, heads, scores, context),
        Plain => attend_to::<false>(query, keys, heads, scores, context),
    }
}

#[inline(always)]
fn attend_to<const FUSED: bool>(
    query: &[f32],
    keys: &[&[f32]],
    heads: usize,
    scores: &mut [f32],
    context: &mut [f32],
) {
    let (d, count) = (query.len(), keys.len());
    if count == 0 {
        return context.fill(0.0);
    }
    let width = d / heads;
    // Key by key and value by value, so that each is read once and in order: together they are the largest part of
    // what a step reads beside the weights.
    for (place, key) in keys.iter().enumerate() {
        let parts = query.chunks_exact(width).zip(key[..d].chunks_exact(width));
        for (head, (query, key)) in parts.enumerate() {
            scores[head * count + place] = dot::<FUSED>(query, key);
        }
    }
    let scale = 1.0 / (width as f32).sqrt();
    for scores in scores.chunks_exact_mut(count) {
        let highest = simd::max(scores);
        let inverse = 1.0 / simd::exp_and_sum(scores, highest, scale);
        scores.iter_mut().for_each(|score| *score *= inverse);
    }
    context.fill(0.0);
    for (place, value) in keys.iter().enumerate() {
        let parts = context.chunks_exact_mut(width);
        let parts = parts.zip(value[d..].chunks_exact(width)).enumerate();
        for (head, (context, value)) in parts {
            let weight = scores[head * count + place];
            for (sum, value) in context.iter_mut().zip(value) {
                *sum = multiply_add::<FUSED>(weight, *value, *sum);
            }
        }
    }
}

#[inline(always)]
fn multiply_add<const FUSED: bool>(a: f32, b: f32, sum: f32) -> f32 {
    // Without an FMA instruction, `mul_add` is a slow function call.
    if FUSED {
        a.mul_add(b, sum)
    } else {
        a * b + sum
    }
}

#[inline(always)]
fn dot<const FUSED: bool>(x: &[f32], y: &[f32]) -> f32 {
    const LANES: usize = simd::LANES;
    let (xs, x_rest) = x.as_chunks::<LANES>();
    let (ys, y_rest) = y.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for (x, y) in xs.iter().zip(ys) {
        for j in 0..LANES {
            lanes[j] = multiply_add::<FUSED>(x[j], y[j], lanes[j]);
        }
    }
    let mut rest = 0.0;
    for (x, y) in x_rest.iter().zip(y_rest) {
        rest = multiply_add::<FUSED>(*x, *y, rest);
    }
    simd::reduce(lanes, |a, b| a + b) + rest
}
