//! The cell of one row, and its attention to the rows before it.

use crate::alignment::{
    AdditiveActivation, inner_row, outer_row, score_row, score_row_backward, softmax_row,
    weighted_row,
};
use crate::buffer::Buffer;
use crate::isa::kernel;
use crate::simd::{self, sigmoid, tanh};

kernel! {
    /// x `[4h]` is the sum of both sides of the gates, c' `[h]` what is read of the memory, `added` `[h]` what is
    /// added to it. Writes h and c to `next` `[2h]`, and the gates and tanh(c) to `kept` `[5h]`.
    pub(super) fn forward(x: &[f32], c_read: &[f32], added: &[f32], next: &mut [f32], kept: &mut [f32]) {
        let h = c_read.len();
        let (gates, bent) = kept.split_at_mut(4 * h);
        gates.copy_from_slice(x);
        gates[..2 * h].iter_mut().for_each(|i| *i = sigmoid(*i));
        gates[2 * h..3 * h].iter_mut().for_each(|g| *g = tanh(*g));
        gates[3 * h..].iter_mut().for_each(|o| *o = sigmoid(*o));
        let (i, f) = (&gates[..h], &gates[h..2 * h]);
        let (g, o) = (&gates[2 * h..3 * h], &gates[3 * h..4 * h]);
        let (output, c) = next.split_at_mut(h);
        let (output, c, added) = (&mut output[..h], &mut c[..h], &added[..h]);
        for j in 0..h {
            c[j] = f[j] * c_read[j] + i[j] * g[j] + added[j];
        }
        for (bent, c) in bent.iter_mut().zip(&*c) {
            *bent = tanh(*c);
        }
        for ((output, o), bent) in output.iter_mut().zip(o).zip(&*bent) {
            *output = o * bent;
        }
    }
}

kernel! {
    /// From the gradient of h and c, `dstate` `[2h]`, to that of the gates, dx `[4h]`, and of c'. The second half of
    /// `dstate` becomes the whole gradient of c, which is also that of what was added.
    pub(super) fn backward(kept: &[f32], c_read: &[f32], dx: &mut [f32], dc_read: &mut [f32], dstate: &mut [f32]) {
        let h = c_read.len();
        let (i, f) = (&kept[..h], &kept[h..2 * h]);
        let (g, o) = (&kept[2 * h..3 * h], &kept[3 * h..4 * h]);
        let bent = &kept[4 * h..5 * h];
        let (dh, dc) = dstate.split_at_mut(h);
        let (dh, dc, dc_read) = (&dh[..h], &mut dc[..h], &mut dc_read[..h]);
        let do_ = &mut dx[3 * h..4 * h];
        for j in 0..h {
            dc[j] += dh[j] * o[j] * (1.0 - bent[j] * bent[j]);
            do_[j] = dh[j] * bent[j] * o[j] * (1.0 - o[j]);
        }
        let di = &mut dx[..h];
        for j in 0..h {
            di[j] = dc[j] * g[j] * i[j] * (1.0 - i[j]);
        }
        let df = &mut dx[h..2 * h];
        for j in 0..h {
            df[j] = dc[j] * c_read[j] * f[j] * (1.0 - f[j]);
        }
        let dg = &mut dx[2 * h..3 * h];
        for j in 0..h {
            dg[j] = dc[j] * i[j] * (1.0 - g[j] * g[j]);
        }
        for j in 0..h {
            dc_read[j] = dc[j] * f[j];
        }
    }
}

kernel! {
    /// r = σ(x), and y = r α'.
    pub(super) fn gate(x: &[f32], values: &[f32], r: &mut [f32], y: &mut [f32]) {
        for (r, x) in r.iter_mut().zip(x) {
            *r = sigmoid(*x);
        }
        for ((y, r), value) in y.iter_mut().zip(&*r).zip(values) {
            *y = r * value;
        }
    }
}

kernel! {
    /// From dy to dx and dα'.
    pub(super) fn gate_backward(r: &[f32], values: &[f32], dy: &[f32], dx: &mut [f32], dvalues: &mut [f32]) {
        let h = r.len();
        let (values, dy) = (&values[..h], &dy[..h]);
        let (dx, dvalues) = (&mut dx[..h], &mut dvalues[..h]);
        for j in 0..h {
            dx[j] = dy[j] * values[j] * r[j] * (1.0 - r[j]);
            dvalues[j] = dy[j] * r[j];
        }
    }
}

kernel! {
    fn softmax_backward(w: &[f32], dw: &mut [f32]) {
        let mean = simd::dot(w, dw);
        for (dw, w) in dw.iter_mut().zip(w) {
            *dw = w * (*dw - mean);
        }
    }
}

/// The activation of the paper's scores.
const TANH: AdditiveActivation = AdditiveActivation::Tanh;

/// Keys `[l, h]` and values `[l, d]` of a tape. A query sees all of them.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) keys: &'a [f32],
    pub(super) values: &'a [f32],
    pub(super) vector: &'a [f32],
}

/// Their gradients.
pub(super) struct SeenGradients<'a> {
    pub(super) keys: &'a mut [f32],
    pub(super) values: &'a mut [f32],
    pub(super) vector: &'a mut [f32],
}

impl Seen<'_> {
    /// The weights `[l]` of a query, and the weighted sum of the values `[d]`: zeros if there are none.
    pub(super) fn read(&self, query: &[f32], weights: &mut [f32], sum: &mut [f32]) {
        if weights.is_empty() {
            sum.fill(0.0);
            return;
        }
        let mut scores = Buffer::any(weights.len());
        score_row(query, self.keys, self.vector, TANH, &mut scores);
        softmax_row(&scores, weights);
        weighted_row(weights, self.values, sum);
    }

    /// From the gradient of the sum to that of the query, and adds those of keys, values and vector.
    pub(super) fn read_backward(
        &self,
        query: &[f32],
        weights: &[f32],
        dsum: &[f32],
        dquery: &mut [f32],
        into: SeenGradients,
    ) {
        dquery.fill(0.0);
        if weights.is_empty() {
            return;
        }
        let mut dweights = Buffer::any(weights.len());
        inner_row(dsum, self.values, &mut dweights);
        outer_row(weights, dsum, into.values);
        softmax_backward(weights, &mut dweights);
        let (k, v) = (self.keys, self.vector);
        let sums = [dquery, into.keys, into.vector];
        score_row_backward(query, k, v, TANH, &dweights, sums);
    }
}
