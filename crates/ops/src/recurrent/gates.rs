//! The gates and the state of a cell for one row, forward and backward.

use super::Cell;
use crate::isa::kernel;
use crate::simd::{sigmoid, tanh};

/// Writes the state after a step, and what the backward pass needs.
pub(super) fn forward(
    cell: Cell,
    x: &[f32],
    u: &[f32],
    previous: &[f32],
    next: &mut [f32],
    kept: &mut [f32],
) {
    match cell {
        Cell::Lstm => lstm_row(x, u, previous, next, kept),
        Cell::Gru => gru_row(x, u, previous, next, kept),
    }
}

/// Writes dx `[G h]`, and replaces the gradient of the state after a step by that of the state before,
/// without the part through u.
pub(super) fn backward(
    cell: Cell,
    kept: &[f32],
    previous: &[f32],
    dx: &mut [f32],
    dstate: &mut [f32],
) {
    match cell {
        Cell::Lstm => lstm_row_backward(kept, previous, dx, dstate),
        Cell::Gru => gru_row_backward(kept, previous, dx, dstate),
    }
}

/// du `[G h]` from dx. They are equal, except for n of a GRU, where du is multiplied by r.
pub(super) fn recurrent_side(cell: Cell, kept: &[f32], dx: &[f32], du: &mut [f32]) {
    du.copy_from_slice(dx);
    if cell == Cell::Gru {
        let h = dx.len() / 3;
        multiply_row(&mut du[2 * h..], &kept[..h]);
    }
}

kernel! {
    fn multiply_row(x: &mut [f32], factors: &[f32]) {
        x.iter_mut().zip(factors).for_each(|(x, f)| *x *= f);
    }
}

kernel! {
    /// x += y.
    pub(super) fn add_row(x: &mut [f32], y: &[f32]) {
        x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
    }
}

kernel! {
    fn lstm_row(x: &[f32], u: &[f32], previous: &[f32], next: &mut [f32], kept: &mut [f32]) {
        let h = next.len() / 2;
        let (gates, bent) = kept.split_at_mut(4 * h);
        for ((gate, x), u) in gates.iter_mut().zip(x).zip(u) {
            *gate = x + u;
        }
        gates[..2 * h].iter_mut().for_each(|i| *i = sigmoid(*i));
        gates[2 * h..3 * h].iter_mut().for_each(|g| *g = tanh(*g));
        gates[3 * h..].iter_mut().for_each(|o| *o = sigmoid(*o));
        let (i, f) = (&gates[..h], &gates[h..2 * h]);
        let (g, o) = (&gates[2 * h..3 * h], &gates[3 * h..4 * h]);
        let ((output, c), c_before) = (next.split_at_mut(h), &previous[h..2 * h]);
        let (output, c) = (&mut output[..h], &mut c[..h]);
        for j in 0..h {
            c[j] = f[j] * c_before[j] + i[j] * g[j];
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
    fn lstm_row_backward(kept: &[f32], previous: &[f32], dx: &mut [f32], dstate: &mut [f32]) {
        let h = dstate.len() / 2;
        let (i, f) = (&kept[..h], &kept[h..2 * h]);
        let (g, o) = (&kept[2 * h..3 * h], &kept[3 * h..4 * h]);
        let (bent, c_before) = (&kept[4 * h..5 * h], &previous[h..2 * h]);
        let (dh, dc) = dstate.split_at_mut(h);
        let (dh, dc) = (&mut dh[..h], &mut dc[..h]);
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
            df[j] = dc[j] * c_before[j] * f[j] * (1.0 - f[j]);
        }
        let dg = &mut dx[2 * h..3 * h];
        for j in 0..h {
            dg[j] = dc[j] * i[j] * (1.0 - g[j] * g[j]);
        }
        for j in 0..h {
            dc[j] *= f[j];
        }
        dh.fill(0.0);
    }
}

kernel! {
    fn gru_row(x: &[f32], u: &[f32], previous: &[f32], next: &mut [f32], kept: &mut [f32]) {
        let h = next.len();
        let (gates, u_n) = kept.split_at_mut(3 * h);
        gates.copy_from_slice(&x[..3 * h]);
        if u.len() > 3 * h {
            gates
                .iter_mut()
                .zip(&u[3 * h..])
                .for_each(|(x, fed)| *x += fed);
        }
        u_n.copy_from_slice(&u[2 * h..3 * h]);
        let (rz, n) = gates.split_at_mut(2 * h);
        for (gate, u) in rz.iter_mut().zip(u) {
            *gate = sigmoid(*gate + u);
        }
        let (r, z) = rz.split_at(h);
        for ((n, r), u_n) in n.iter_mut().zip(r).zip(&*u_n) {
            *n = tanh(*n + r * u_n);
        }
        let (n, z, previous) = (&n[..h], &z[..h], &previous[..h]);
        for j in 0..h {
            next[j] = n[j] + z[j] * (previous[j] - n[j]);
        }
    }
}

kernel! {
    fn gru_row_backward(kept: &[f32], previous: &[f32], dx: &mut [f32], dstate: &mut [f32]) {
        let h = dstate.len();
        let (r, z) = (&kept[..h], &kept[h..2 * h]);
        let (n, u_n) = (&kept[2 * h..3 * h], &kept[3 * h..4 * h]);
        let previous = &previous[..h];
        let dz = &mut dx[h..2 * h];
        for j in 0..h {
            dz[j] = dstate[j] * (previous[j] - n[j]) * z[j] * (1.0 - z[j]);
        }
        let (dr, dn) = dx.split_at_mut(2 * h);
        let (dr, dn) = (&mut dr[..h], &mut dn[..h]);
        for j in 0..h {
            dn[j] = dstate[j] * (1.0 - z[j]) * (1.0 - n[j] * n[j]);
        }
        for j in 0..h {
            dr[j] = dn[j] * u_n[j] * r[j] * (1.0 - r[j]);
        }
        for j in 0..h {
            dstate[j] *= z[j];
        }
    }
}
