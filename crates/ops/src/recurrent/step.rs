//! One step of a cell, for decoders that compute something between steps.

use std::ops::Range;
use std::sync::Mutex;

use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use super::{Cell, composed, gates};
use crate::buffer::Buffer;
use crate::cpu::{self, slice, view};
use crate::pass::{Kernels, Pass};
use crate::profile::{self, Part};
use crate::shared::Shared;

/// One step of k rows: state `[k, S]` to state `[k, S]`.
///
/// `input` is the input side of all steps `[n, G h]`; this step uses the k rows `rows`. `recurrent` is u
/// `[k, G h]`, or for a GRU with an input that is fed `[k, 6h]`: u, then what is added to the input side.
pub fn cell(
    cell: Cell,
    input: &Shared,
    rows: Range<usize>,
    recurrent: &Tensor,
    state: &Tensor,
    pass: &Pass,
) -> Result<Tensor> {
    let step = Step::new(cell, input, rows, recurrent, state)?;
    match (pass.kernels, pass.trains()) {
        (Kernels::Composed, _) => {
            let x = input.value().narrow(0, step.rows.start, step.rows.len())?;
            composed::step(cell, &x, recurrent, state)
        }
        (Kernels::Fused, true) => input.token().apply_op3(recurrent, state, step),
        (Kernels::Fused, false) => input.token().apply_op3_no_bwd(recurrent, state, &step),
    }
}

/// Its first input is the token of the shared tensor.
struct Step {
    cell: Cell,
    input: Shared,
    rows: Range<usize>,
    h: usize,
    /// `[k, 5h]` of an LSTM, `[k, 4h]` of a GRU.
    kept: Mutex<Option<Buffer>>,
}

/// Rows per task. Fewer than elsewhere, because a step has few rows.
const STEP_ROWS: usize = 32;

impl Step {
    fn new(
        cell: Cell,
        input: &Shared,
        rows: Range<usize>,
        recurrent: &Tensor,
        state: &Tensor,
    ) -> Result<Self> {
        let (n, width) = input.value().dims2()?;
        let (h, k) = (width / cell.gates(), rows.len());
        let fits = match recurrent.dims2()? {
            (count, u) if count == k => u == width || (cell == Cell::Gru && u == 2 * width),
            _ => false,
        };
        if h * cell.gates() != width || rows.end > n || !fits {
            let (x, u) = (input.value().shape(), recurrent.shape());
            bail!("{cell:?} step of rows {rows:?} of {x:?} with {u:?}");
        }
        if state.dims2()? != (k, cell.state_width(h)) {
            bail!("{cell:?} step of {k} rows from state {:?}", state.shape());
        }
        Ok(Self {
            cell,
            input: input.clone(),
            rows,
            h,
            kept: Mutex::new(None),
        })
    }

    /// The widths of x, of a state and of what is kept.
    fn widths(&self) -> (usize, usize, usize) {
        let (cell, h) = (self.cell, self.h);
        (cell.gates() * h, cell.state_width(h), cell.kept_width(h))
    }
}

impl CustomOp3 for Step {
    fn name(&self) -> &'static str {
        "cell"
    }

    fn cpu_fwd(
        &self,
        _: &CpuStorage,
        _: &Layout,
        recurrent: &CpuStorage,
        recurrent_layout: &Layout,
        state: &CpuStorage,
        state_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let _time = profile::time(Part::Recurrence);
        let (gate, width, keep) = self.widths();
        let (k, fed) = recurrent_layout.shape().dims2()?;
        let u = slice(recurrent, recurrent_layout)?;
        let state = slice(state, state_layout)?;
        let x = view(self.input.value())?;
        let x = &x[self.rows.start * gate..self.rows.end * gate];
        let (mut next, mut kept) = (vec![0.0; k * width], Buffer::any(k * keep));
        let chunks = next
            .par_chunks_mut(STEP_ROWS * width)
            .zip(kept.par_chunks_mut(STEP_ROWS * keep));
        chunks.enumerate().for_each(|(i, (next, kept))| {
            let rows = next
                .chunks_exact_mut(width)
                .zip(kept.chunks_exact_mut(keep));
            for (row, (next, kept)) in rows.enumerate() {
                let row = i * STEP_ROWS + row;
                let (x, u) = (&x[row * gate..][..gate], &u[row * fed..][..fed]);
                gates::forward(self.cell, x, u, &state[row * width..][..width], next, kept);
            }
        });
        *self.kept.lock().unwrap_or_else(|e| e.into_inner()) = Some(kept);
        Ok((CpuStorage::F32(next), (k, width).into()))
    }

    fn bwd(
        &self,
        _: &Tensor,
        recurrent: &Tensor,
        state: &Tensor,
        _: &Tensor,
        dnext: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let _time = profile::time(Part::RecurrenceBackward);
        let kept = self.kept.lock().unwrap_or_else(|e| e.into_inner()).take();
        let Some(kept) = kept.as_deref() else {
            bail!("cell: the backward pass runs once, after a forward pass in training")
        };
        let (gate, width, keep) = self.widths();
        let fed = recurrent.dim(1)?;
        let previous: &[f32] = &view(state)?;
        let mut dstate = view(dnext)?.to_vec();
        let mut du = vec![0.0; recurrent.elem_count()];
        self.input.accumulate(|dx| {
            let dx = &mut dx[self.rows.start * gate..self.rows.end * gate];
            let chunks = dx
                .par_chunks_mut(STEP_ROWS * gate)
                .zip(du.par_chunks_mut(STEP_ROWS * fed))
                .zip(dstate.par_chunks_mut(STEP_ROWS * width));
            chunks.enumerate().for_each(|(i, ((dx, du), dstate))| {
                let mut here = Buffer::any(gate);
                let rows = dx
                    .chunks_exact_mut(gate)
                    .zip(du.chunks_exact_mut(fed))
                    .zip(dstate.chunks_exact_mut(width));
                for (row, ((dx, du), dstate)) in rows.enumerate() {
                    let row = i * STEP_ROWS + row;
                    let kept = &kept[row * keep..][..keep];
                    let previous = &previous[row * width..][..width];
                    gates::backward(self.cell, kept, previous, &mut here, dstate);
                    gates::recurrent_side(self.cell, kept, &here, &mut du[..gate]);
                    if fed > gate {
                        du[gate..].copy_from_slice(&here);
                    }
                    gates::add_row(dx, &here);
                }
            });
        });
        let (du, dstate) = (cpu::like(du, recurrent)?, cpu::like(dstate, state)?);
        Ok((Some(self.input.token_gradient()?), Some(du), Some(dstate)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, assert_close, weight};

    #[test]
    fn fused_equals_composed_for_steps_that_share_an_input() {
        for of in Cell::ALL {
            for (k, h) in [(1, 1), (3, 5), (70, 24)] {
                let (gate, width) = (of.gates() * h, of.state_width(h));
                let case = Case::new(&[]).input((4 * k + 1, gate)).input((k, gate));
                // Some rows in the middle are used twice, others never.
                case.input((k, width)).check_once(|x, pass| {
                    let input = Shared::new(&x[0], pass)?;
                    let mut state = x[2].clone();
                    for first in [k, 2 * k, k + 1] {
                        let u = (&x[1] * (1.0 + first as f64 / 100.0))?;
                        state = cell(of, &input, first..first + k, &u, &state, pass)?;
                    }
                    Ok(state)
                });
            }
        }
    }

    #[test]
    fn fused_equals_composed_for_a_gru_with_input_feeding() {
        for (k, h) in [(1, 1), (5, 7), (65, 16)] {
            let case = Case::new(&[]).input((2 * k, 3 * h)).input((k, 6 * h));
            case.input((k, h)).check_once(|x, pass| {
                let input = Shared::new(&x[0], pass)?;
                let state = cell(Cell::Gru, &input, 0..k, &x[1], &x[2], pass)?;
                cell(Cell::Gru, &input, k..2 * k, &x[1], &state, pass)
            });
        }
    }

    #[test]
    fn gates_have_the_order_of_pytorch() -> Result<()> {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        for kernels in Kernels::ALL {
            let pass = Pass::eval(kernels);
            let run = |of, x: &[f32], u: &[f32], state: &[f32]| -> Result<Vec<f32>> {
                let row = |v: &[f32]| Tensor::new(v, &candle_core::Device::Cpu)?.unsqueeze(0);
                let input = Shared::new(&row(x)?, &pass)?;
                let next = cell(of, &input, 0..1, &row(u)?, &row(state)?, &pass)?;
                next.squeeze(0)?.to_vec1()
            };
            let next = run(
                Cell::Lstm,
                &[0.1, 0.2, 0.3, 0.4],
                &[0.5, -0.6, 0.7, -0.8],
                &[9.0, 0.9],
            )?;
            let c = sigmoid(-0.4) * 0.9 + sigmoid(0.6) * 1f64.tanh();
            let h = sigmoid(-0.4) * c.tanh();
            assert!((f64::from(next[0]) - h).abs() < 1e-6, "{kernels:?}");
            assert!((f64::from(next[1]) - c).abs() < 1e-6, "{kernels:?}");
            let next = run(Cell::Gru, &[0.1, 0.2, 0.3], &[0.5, -0.6, 0.7], &[0.9])?;
            let (r, z) = (sigmoid(0.6), sigmoid(-0.4));
            let h = (1.0 - z) * (0.3 + r * 0.7).tanh() + z * 0.9;
            assert!((f64::from(next[0]) - h).abs() < 1e-6, "{kernels:?}");
        }
        Ok(())
    }

    #[test]
    fn evaluation_gives_the_same_numbers_and_no_graph() -> Result<()> {
        for of in Cell::ALL {
            let [x, u] = ["x", "u"].map(|name| weight(name, (4, of.gates() * 3)));
            let state = weight("state", (4, of.state_width(3)));
            let run = |pass: &Pass| {
                let input = Shared::new(x.value(), pass)?;
                cell(of, &input, 0..4, u.value(), state.value(), pass)
            };
            let trained = run(&Pass::train(Kernels::Fused, 1, 1))?;
            let tested = run(&Pass::eval(Kernels::Fused))?;
            assert_close(&trained, &tested, 0.0);
            assert!(trained.track_op() && !tested.track_op());
        }
        Ok(())
    }

    #[test]
    fn mismatched_shapes_are_errors() -> Result<()> {
        let pass = Pass::eval(Kernels::Fused);
        let zeros = |rows: usize, cols: usize| {
            Tensor::zeros(
                (rows, cols),
                candle_core::DType::F32,
                &candle_core::Device::Cpu,
            )
        };
        let input = Shared::new(&zeros(5, 12)?, &pass)?;
        let run = |of, rows, u, s| cell(of, &input, rows, &zeros(2, u)?, &zeros(2, s)?, &pass);
        assert!(run(Cell::Lstm, 3..5, 12, 6).is_ok());
        assert!(run(Cell::Lstm, 4..6, 12, 6).is_err());
        assert!(run(Cell::Lstm, 2..5, 12, 6).is_err());
        assert!(run(Cell::Lstm, 3..5, 24, 6).is_err());
        assert!(run(Cell::Lstm, 3..5, 12, 3).is_err());
        assert!(run(Cell::Gru, 3..5, 24, 4).is_ok());
        Ok(())
    }
}
