//! Products between the rows of a sentence's queries and those of its keys.
//!
//! q queries `[n, d]`, k keys `[m, d]`, w weights `[n, s]`, all packed by [`Pairs`].

use rayon::prelude::*;

use super::Pairs;
use crate::gemm::{Mat, MatMut, Threads, Write, product};
use crate::isa::kernel;
use crate::simd;

/// Sentences with fewer queries are computed row by row: packing matrices costs more than it saves.
const FEW: usize = 8;
/// The fewest multiplications per task.
const SMALL: usize = 1 << 15;

/// w = q kᵀ, sentence by sentence.
pub(super) fn inner(pairs: &Pairs, q: &[f32], k: &[f32], w: &mut [f32]) {
    let (s, d) = (pairs.columns(), width(q, pairs.queries.rows()));
    let parts = pairs.queries.split(w, s);
    each(parts, pairs, d, |sentence, w| {
        let (rows, keys) = (pairs.queries.range(sentence), pairs.keys.range(sentence));
        let (t, length) = (rows.len(), keys.len());
        let (q, k) = (
            &q[rows.start * d..rows.end * d],
            &k[keys.start * d..keys.end * d],
        );
        if t < FEW {
            for (q, w) in q.chunks_exact(d).zip(w.chunks_exact_mut(s.max(1))) {
                inner_row(q, k, &mut w[..length]);
                w[length..].fill(0.0);
            }
        } else {
            w.chunks_exact_mut(s.max(1))
                .for_each(|w| w[length..].fill(0.0));
            let dst = MatMut::columns(w, t, s, 0, length);
            let (q, k) = (Mat::new(q, t, d), Mat::new(k, length, d).t());
            product(dst, Write::Over, q, k, Threads::One);
        }
    });
}

/// y = w k, sentence by sentence: `[n, d]`.
pub(super) fn weighted(pairs: &Pairs, w: &[f32], k: &[f32], y: &mut [f32]) {
    let (s, d) = (pairs.columns(), width(y, pairs.queries.rows()));
    let parts = pairs.queries.split(y, d);
    each(parts, pairs, d, |sentence, y| {
        let (rows, keys) = (pairs.queries.range(sentence), pairs.keys.range(sentence));
        let (t, length) = (rows.len(), keys.len());
        let (w, k) = (
            &w[rows.start * s..rows.end * s],
            &k[keys.start * d..keys.end * d],
        );
        if t < FEW || length == 0 {
            for (y, row) in y.chunks_exact_mut(d).zip(0..t) {
                weighted_row(&w[row * s..][..length], k, y);
            }
        } else {
            let w = Mat::columns(w, t, s, 0, length);
            let dst = MatMut::new(y, t, d);
            product(dst, Write::Over, w, Mat::new(k, length, d), Threads::One);
        }
    });
}

/// dk += wᵀ q, sentence by sentence.
pub(super) fn outer(pairs: &Pairs, w: &[f32], q: &[f32], dk: &mut [f32]) {
    let (s, d) = (pairs.columns(), width(q, pairs.queries.rows()));
    let parts = pairs.keys.split(dk, d);
    each(parts, pairs, d, |sentence, dk| {
        let (rows, length) = (
            pairs.queries.range(sentence),
            pairs.keys.lengths()[sentence],
        );
        let (t, start) = (rows.len(), rows.start);
        let (w, q) = (&w[start * s..rows.end * s], &q[start * d..rows.end * d]);
        if t < FEW || length == 0 {
            for (q, row) in q.chunks_exact(d).zip(0..t) {
                outer_row(&w[row * s..][..length], q, dk);
            }
        } else {
            let w = Mat::columns(w, t, s, 0, length).t();
            let dst = MatMut::new(dk, length, d);
            product(dst, Write::Add, w, Mat::new(q, t, d), Threads::One);
        }
    });
}

/// Calls `work` for every sentence, in parallel if there is enough of it.
pub(super) fn each(
    parts: Vec<&mut [f32]>,
    pairs: &Pairs,
    d: usize,
    work: impl Fn(usize, &mut [f32]) + Sync,
) {
    let lengths = pairs.queries.lengths().iter().zip(pairs.keys.lengths());
    let size: usize = lengths.map(|(t, length)| t * length * d).sum();
    if size < SMALL {
        parts
            .into_iter()
            .enumerate()
            .for_each(|(i, part)| work(i, part));
    } else {
        let least = (SMALL * parts.len() / size).max(1);
        let parts = parts.into_par_iter().enumerate().with_min_len(least);
        parts.for_each(|(i, part)| work(i, part));
    }
}

/// The width of packed rows.
fn width(x: &[f32], rows: usize) -> usize {
    x.len().checked_div(rows).unwrap_or(0).max(1)
}

kernel! {
    pub(crate) fn inner_row(q: &[f32], k: &[f32], w: &mut [f32]) {
        for (w, k) in w.iter_mut().zip(k.chunks_exact(q.len())) {
            *w = simd::dot(q, k);
        }
    }
}

kernel! {
    pub(crate) fn weighted_row(w: &[f32], k: &[f32], y: &mut [f32]) {
        y.fill(0.0);
        for (w, k) in w.iter().zip(k.chunks_exact(y.len())) {
            for (y, k) in y.iter_mut().zip(k) {
                *y += w * k;
            }
        }
    }
}

kernel! {
    pub(crate) fn outer_row(w: &[f32], q: &[f32], dk: &mut [f32]) {
        for (w, dk) in w.iter().zip(dk.chunks_exact_mut(q.len())) {
            for (dk, q) in dk.iter_mut().zip(q) {
                *dk += w * q;
            }
        }
    }
}
