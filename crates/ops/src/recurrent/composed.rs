//! Recurrent layers from plain candle operations: the reference implementation.

use candle_core::{DType, Result, Tensor};

use super::Cell;
use super::steps::Steps;
use crate::linear::Linear;

/// One step: x `[k, G h]`, u `[k, G h]` or, with an input that is fed, `[k, 6h]`, and the previous state
/// `[k, S]`.
pub(super) fn step(cell: Cell, x: &Tensor, u: &Tensor, state: &Tensor) -> Result<Tensor> {
    let width = x.dim(1)?;
    let h = width / cell.gates();
    let part = |t: &Tensor, i: usize| t.narrow(1, i * h, h);
    match cell {
        Cell::Lstm => {
            let gates = (x + u)?;
            let (i, f) = (part(&gates, 0)?, part(&gates, 1)?);
            let (g, o) = (part(&gates, 2)?.tanh()?, part(&gates, 3)?);
            let (i, f, o) = (sigmoid(&i)?, sigmoid(&f)?, sigmoid(&o)?);
            let c = ((f * part(state, 1)?)? + (i * g)?)?;
            Tensor::cat(&[&(o * c.tanh()?)?, &c], 1)
        }
        Cell::Gru => {
            let x = if u.dim(1)? > width {
                (x + u.narrow(1, width, width)?)?
            } else {
                x.clone()
            };
            let r = sigmoid(&(part(&x, 0)? + part(u, 0)?)?)?;
            let z = sigmoid(&(part(&x, 1)? + part(u, 1)?)?)?;
            let n = (part(&x, 2)? + (r * part(u, 2)?)?)?.tanh()?;
            (&n + (z * (state - &n)?)?)?.contiguous()
        }
    }
}

fn sigmoid(x: &Tensor) -> Result<Tensor> {
    candle_nn::ops::sigmoid(&x.contiguous()?)
}

/// All steps: x `[n, G h]` to states `[n, S]`, from states `[b, S]`.
pub(super) fn recurrence(
    cell: Cell,
    x: &Tensor,
    recurrent: &Linear,
    start: Option<&Tensor>,
    steps: &Steps,
) -> Result<Tensor> {
    let (weight, device) = (recurrent.weight.value(), x.device());
    let width = cell.state_width(weight.dim(1)?);
    let order = steps.order();
    if order.is_empty() {
        return Tensor::zeros((0, width), DType::F32, device);
    }
    let select = |from: &Tensor, rows: Vec<u32>| from.index_select(&Tensor::new(rows, device)?, 0);
    let mut state = match start {
        Some(start) => select(start, order.iter().map(|&i| i as u32).collect())?,
        None => Tensor::zeros((order.len(), width), DType::F32, device)?,
    };
    // The states of all steps concatenated, and the index of each row of x among them.
    let (mut states, mut places, mut count) = (Vec::new(), vec![0; x.dim(0)?], 0);
    for t in 0..steps.longest(order) {
        let going = &order[..steps.going(order, t)];
        let rows: Vec<u32> = going.iter().map(|&i| steps.row(i, t) as u32).collect();
        for &row in &rows {
            places[row as usize] = count;
            count += 1;
        }
        state = state.narrow(0, 0, going.len())?;
        let before = state.narrow(1, 0, weight.dim(1)?)?.contiguous()?;
        let u = before.matmul(&weight.t()?)?;
        let u = match &recurrent.bias {
            Some(bias) => u.broadcast_add(bias.value())?,
            None => u,
        };
        state = step(cell, &select(x, rows)?, &u, &state)?;
        states.push(state.clone());
    }
    select(&Tensor::cat(&states, 0)?, places)
}
