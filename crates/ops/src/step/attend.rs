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
    let longest = if rows > 1 { keys(rows - 1).len() } else { 0 };
    if rows * longest * d < SMALL {
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
        let (d, count) = (query.len(), keys.len());
        context.fill(0.0);
        if count == 0 {
            return;
        }
        let width = d / heads;
        for (place, key) in keys.iter().enumerate() {
            let parts = query.chunks_exact(width).zip(key[..d].chunks_exact(width));
            for (head, (query, key)) in parts.enumerate() {
                scores[head * count + place] = simd::dot(query, key);
            }
        }
        let scale = 1.0 / (width as f32).sqrt();
        for scores in scores.chunks_exact_mut(count) {
            let highest = simd::max(scores);
            let inverse = 1.0 / simd::exp_and_sum(scores, highest, scale);
            scores.iter_mut().for_each(|score| *score *= inverse);
        }
        for (place, value) in keys.iter().enumerate() {
            let parts = context.chunks_exact_mut(width).zip(value[d..].chunks_exact(width));
            for (head, (context, value)) in parts.enumerate() {
                let weight = scores[head * count + place];
                for (sum, value) in context.iter_mut().zip(value) {
                    *sum += weight * value;
                }
            }
        }
    }
}
