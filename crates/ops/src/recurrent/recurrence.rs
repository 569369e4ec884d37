//! A recurrent layer over packed sentences: all of its steps as one operation.

use std::sync::Mutex;

use attend_batch::Segments;
use candle_core::{CpuStorage, CustomOp2, CustomOp3, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use super::group::{Ahead, Back, Layer, Seen};
use super::steps::Steps;
use super::{Cell, Direction, composed, gates};
use crate::buffer::Buffer;
use crate::cpu::{self, slice, view};
use crate::gemm::{Mat, MatMut, PackedMatrix, Threads, product};
use crate::linear::{Linear, recorded_by};
use crate::pass::{Kernels, Pass};
use crate::profile::{self, Part};
use crate::simd::{self, TASK_ROWS};

/// Processes every sentence in one direction: x `[n, G h]`, the input side of all tokens, to states `[n, S]`,
/// with the state after each token in the row of the token.
///
/// `recurrent` is U `[G h, h]` with an optional bias `[G h]`. `start` is the initial state `[b, S]` of the b
/// sentences; the default is zeros.
pub fn recurrence(
    cell: Cell,
    input: &Tensor,
    recurrent: &Linear,
    start: Option<&Tensor>,
    sentences: &Segments,
    direction: Direction,
    pass: &Pass,
) -> Result<Tensor> {
    let (n, width) = input.dims2()?;
    let h = width / cell.gates();
    if h == 0 || recurrent.weight.value().dims2()? != (width, h) {
        let weight = recurrent.weight.value().shape();
        bail!("{cell:?} with an input of width {width} does not match weights {weight:?}");
    }
    if sentences.lengths().iter().sum::<usize>() != n || sentences.rows() != n {
        bail!("{n} rows do not match the lengths of their sentences");
    }
    let (b, width) = (sentences.count(), cell.state_width(h));
    if let Some(start) = start
        && start.dims2()? != (b, width)
    {
        bail!(
            "initial states {:?} do not match {b} sentences of state width {width}",
            start.shape()
        );
    }
    let op = Recurrence {
        cell,
        h,
        recurrent: recurrent.clone(),
        steps: Steps::new(sentences, direction),
        kept: Mutex::new(None),
    };
    let weight = recorded_by(&[recurrent]).value();
    match (pass.kernels, start, pass.trains()) {
        (Kernels::Composed, ..) => composed::recurrence(cell, input, recurrent, start, &op.steps),
        (Kernels::Fused, None, true) => input.apply_op2(weight, op),
        (Kernels::Fused, None, false) => input.apply_op2_no_bwd(weight, &op),
        (Kernels::Fused, Some(start), true) => input.apply_op3(weight, start, op),
        (Kernels::Fused, Some(start), false) => input.apply_op3_no_bwd(weight, start, &op),
    }
}

/// Its second input is a weight, so that candle records the operation even if x leads to no variable.
/// Gradients of weights go to their own buffers.
struct Recurrence {
    cell: Cell,
    h: usize,
    recurrent: Linear,
    steps: Steps,
    /// `[n, 5h]` of an LSTM, `[n, 4h]` of a GRU.
    kept: Mutex<Option<Buffer>>,
}

impl Recurrence {
    fn forward(&self, x: &[f32], start: Option<&[f32]>) -> Result<(CpuStorage, Shape)> {
        let _time = profile::time(Part::Recurrence);
        let (cell, h, sentences) = (self.cell, self.h, self.steps.sentences());
        let n = sentences.rows();
        let (gate, width, keep) = (cell.gates() * h, cell.state_width(h), cell.kept_width(h));
        let weight = view(self.recurrent.weight.value())?;
        let weight = PackedMatrix::new(Mat::new(&weight, gate, h).t(), h, gate);
        let bias = self.recurrent.bias.as_ref();
        let bias = bias.map(|bias| view(bias.value())).transpose()?;
        let bias: Option<&[f32]> = bias.as_deref();
        let (mut states, mut kept) = (vec![0.0; n * width], Buffer::any(n * keep));
        let parts = sentences.split(&mut states, width).into_iter();
        let parts = parts.zip(sentences.split(&mut kept, keep));
        let parts = parts.map(|(states, kept)| Ahead { states, kept }).collect();
        let layer = self.layer(start);
        let groups = self.steps.deal(parts, rayon::current_num_threads());
        let groups = groups.into_par_iter().with_max_len(1);
        groups.for_each(|group| layer.forward(x, &weight, bias, group));
        *self.kept.lock().unwrap_or_else(|e| e.into_inner()) = Some(kept);
        Ok((CpuStorage::F32(states), (n, width).into()))
    }

    /// Accumulates the gradients of the weights. Returns those of x and of the start.
    fn backward(
        &self,
        start: Option<&[f32]>,
        states: &[f32],
        dstates: &[f32],
    ) -> Result<(Vec<f32>, Vec<f32>)> {
        let _time = profile::time(Part::RecurrenceBackward);
        let kept = self.kept.lock().unwrap_or_else(|e| e.into_inner()).take();
        let Some(kept) = kept.as_deref() else {
            bail!("recurrence: the backward pass runs once, after a forward pass in training")
        };
        let (cell, h, sentences) = (self.cell, self.h, self.steps.sentences());
        let (n, b) = (sentences.rows(), sentences.count());
        let gate = cell.gates() * h;
        let (mut dx, mut before) = (vec![0.0; n * gate], Buffer::any(n * h));
        let each = start.map_or(0, |_| cell.state_width(h));
        let mut dstart = vec![0.0; b * each];
        let dstarts = Segments::packed(vec![1; b]);
        let parts = sentences.split(&mut dx, gate).into_iter();
        let parts = parts.zip(sentences.split(&mut before, h));
        let parts = parts.zip(dstarts.split(&mut dstart, each));
        let parts = parts.map(|((dx, before), dstart)| Back { dx, before, dstart });
        let groups = self
            .steps
            .deal(parts.collect(), rayon::current_num_threads());
        let seen = Seen {
            states,
            kept,
            dstates,
        };
        let layer = self.layer(start);
        let weight = view(self.recurrent.weight.value())?;
        let weight = PackedMatrix::new(Mat::new(&weight, gate, h), gate, h);
        let groups = groups.into_par_iter().with_max_len(1);
        groups.for_each(|group| layer.backward(seen, &weight, group));
        if recorded_by(&[&self.recurrent]).is_trainable() {
            match cell {
                Cell::Lstm => self.accumulate(&dx, &before)?,
                Cell::Gru => self.accumulate(&self.recurrent_side(kept, &dx), &before)?,
            }
        }
        Ok((dx, dstart))
    }

    fn layer<'a>(&'a self, start: Option<&'a [f32]>) -> Layer<'a> {
        Layer {
            cell: self.cell,
            h: self.h,
            steps: &self.steps,
            start,
        }
    }

    /// du `[n, G h]` from dx.
    fn recurrent_side(&self, kept: &[f32], dx: &[f32]) -> Buffer {
        let (gate, keep) = (self.cell.gates() * self.h, self.cell.kept_width(self.h));
        let mut du = Buffer::any(dx.len());
        let chunks = du.par_chunks_mut(TASK_ROWS * gate);
        let chunks = chunks.zip(dx.par_chunks(TASK_ROWS * gate));
        let chunks = chunks.zip(kept.par_chunks(TASK_ROWS * keep));
        chunks.for_each(|((du, dx), kept)| {
            let rows = du.chunks_exact_mut(gate).zip(dx.chunks_exact(gate));
            for ((du, dx), kept) in rows.zip(kept.chunks_exact(keep)) {
                gates::recurrent_side(self.cell, kept, dx, du);
            }
        });
        du
    }

    /// dU (+)= duᵀ h', db (+)= Σ du.
    fn accumulate(&self, du: &[f32], before: &[f32]) -> Result<()> {
        let (h, gate) = (self.h, self.cell.gates() * self.h);
        let n = before.len() / h;
        self.recurrent.weight.accumulate(|dw, write| {
            let (du, before) = (Mat::new(du, n, gate), Mat::new(before, n, h));
            product(
                MatMut::new(dw, gate, h),
                write,
                du.t(),
                before,
                Threads::All,
            );
        })?;
        match &self.recurrent.bias {
            Some(bias) => bias.accumulate(|db, write| simd::column_sums(du, gate, db, write)),
            None => Ok(()),
        }
    }
}

impl CustomOp2 for Recurrence {
    fn name(&self) -> &'static str {
        "recurrence"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        self.forward(slice(x, x_layout)?, None)
    }

    fn bwd(
        &self,
        x: &Tensor,
        _: &Tensor,
        states: &Tensor,
        dstates: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let (dx, _) = self.backward(None, &view(states)?, &view(dstates)?)?;
        Ok((Some(cpu::like(dx, x)?), None))
    }
}

impl CustomOp3 for Recurrence {
    fn name(&self) -> &'static str {
        "recurrence-from"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        _: &CpuStorage,
        _: &Layout,
        start: &CpuStorage,
        start_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        self.forward(slice(x, x_layout)?, Some(slice(start, start_layout)?))
    }

    fn bwd(
        &self,
        x: &Tensor,
        _: &Tensor,
        start: &Tensor,
        states: &Tensor,
        dstates: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let (dx, dstart) = self.backward(Some(&view(start)?), &view(states)?, &view(dstates)?)?;
        let (dx, dstart) = (cpu::like(dx, x)?, cpu::like(dstart, start)?);
        Ok((Some(dx), None, Some(dstart)))
    }
}
