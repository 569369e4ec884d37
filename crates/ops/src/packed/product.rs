//! Affine maps with packed weights.

use candle_core::Result;
use rayon::prelude::*;

use super::int8::QuantizedRows;
use super::{COLS, Input, Kind, PackedWeight};
use crate::buffer::Buffer;
use crate::cpu::view;
use crate::gemm::RowsMut;
use crate::linear::{Activation, Linear, add_row, finish_row};
use crate::profile::{self, Part};
use crate::random::Dropout;
use crate::weight::Weight;

/// At most so many rows: threads divide the outputs, so that each reads only its part of the weights.
const FEW: usize = 512;
/// Rows of a task if threads divide the rows: whole tiles of every instruction set.
const TASK_ROWS: usize = 96;
/// Products of fewer multiplications run on one thread: waking another costs more.
const SMALL: usize = 1 << 17;
/// Copying so many values is worth a second thread.
const LARGE_COPY: usize = 1 << 16;

/// One of several affine maps of the same input.
#[derive(Clone, Copy)]
pub(crate) struct PackedMap<'a> {
    pub(crate) weight: &'a PackedWeight,
    pub(crate) bias: Option<&'a Weight>,
    /// How many outputs are computed: all, or the first.
    pub(crate) outputs: usize,
}

impl<'a> PackedMap<'a> {
    /// The map of a layer, if its weight is packed.
    pub(crate) fn of(layer: &'a Linear) -> Option<Self> {
        let weight = layer.weight.as_packed()?;
        Some(Self {
            weight,
            bias: layer.bias.as_ref(),
            outputs: weight.dims().0,
        })
    }
}

/// A map and its place in the result.
struct Map<'a> {
    weight: &'a PackedWeight,
    bias: Option<&'a [f32]>,
    /// Its first column of the result.
    first: usize,
    outputs: usize,
}

/// A block of outputs of one map.
struct Task<'a> {
    map: &'a Map<'a>,
    block: usize,
    /// Its first column of the result.
    first: usize,
    cols: usize,
}

/// y `[n, Σ outputs]` = f(x Wᵀ + b), for several maps of the same input, side by side.
pub(crate) fn forward(
    x: &[f32],
    layers: &[PackedMap],
    activation: Option<Activation>,
    y: &mut [f32],
) -> Result<()> {
    let _time = profile::time(Part::LinearForward);
    let biases = layers.iter().map(|map| map.bias);
    let biases = biases.map(|bias| bias.map(|bias| view(bias.value())).transpose());
    let biases = biases.collect::<Result<Vec<_>>>()?;
    let mut width = 0;
    let mut maps = Vec::with_capacity(layers.len());
    for (map, bias) in layers.iter().zip(&biases) {
        maps.push(Map {
            weight: map.weight,
            bias: bias.as_deref(),
            first: width,
            outputs: map.outputs,
        });
        width += map.outputs;
    }
    let (_, inputs) = layers[0].weight.dims();
    let n = x.len() / inputs;
    if n == 0 {
        return Ok(());
    }
    let tasks: Vec<Task> = maps.iter().flat_map(Map::tasks).collect();
    if n <= FEW {
        by_outputs(x, inputs, &tasks, activation, y, width);
    } else {
        let parts = y.par_chunks_mut(TASK_ROWS * width);
        let parts = parts.zip(x.par_chunks(TASK_ROWS * inputs)).with_max_len(1);
        parts.for_each(|(y, x)| {
            let x = Input::new(x, inputs, &tasks);
            for task in &tasks {
                let data = &mut y[task.first..];
                task.run(&x, activation, RowsMut { data, width });
            }
        });
    }
    Ok(())
}

fn by_outputs(
    x: &[f32],
    inputs: usize,
    tasks: &[Task],
    activation: Option<Activation>,
    y: &mut [f32],
    width: usize,
) {
    let n = x.len() / inputs;
    let x = Input::new(x, inputs, tasks);
    if x.values.len() * width < SMALL || rayon::current_num_threads() == 1 {
        for task in tasks {
            let data = &mut y[task.first..];
            task.run(&x, activation, RowsMut { data, width });
        }
        return;
    }
    let run = |task: &Task| {
        let mut block = Buffer::any(n * task.cols);
        let (data, width) = (&mut block[..], task.cols);
        task.run(&x, activation, RowsMut { data, width });
        block
    };
    let blocks: Vec<Buffer> = tasks.par_iter().with_max_len(1).map(run).collect();
    let gather = |(row, y): (usize, &mut [f32])| {
        for (task, block) in tasks.iter().zip(&blocks) {
            let block = &block[row * task.cols..][..task.cols];
            y[task.first..][..task.cols].copy_from_slice(block);
        }
    };
    if y.len() < LARGE_COPY {
        y.chunks_exact_mut(width).enumerate().for_each(gather);
    } else {
        y.par_chunks_exact_mut(width).enumerate().for_each(gather);
    }
}

impl Map<'_> {
    fn tasks(&self) -> impl Iterator<Item = Task<'_>> {
        (0..self.outputs.div_ceil(COLS)).map(|block| Task {
            map: self,
            block,
            first: self.first + block * COLS,
            cols: COLS.min(self.outputs - block * COLS),
        })
    }
}

impl Task<'_> {
    /// Writes its columns of the result, which are the first of `y`.
    fn run(&self, x: &Input, activation: Option<Activation>, y: RowsMut) {
        let RowsMut { data, width } = y;
        let y = RowsMut {
            data: &mut *data,
            width,
        };
        self.map.weight.product(x, self.block, self.cols, y);
        let first = self.block * COLS;
        for row in data.chunks_mut(width).take(x.rows) {
            let row = &mut row[..self.cols];
            if let Some(bias) = self.map.bias {
                add_row(row, &bias[first..][..self.cols]);
            }
            if activation.is_some() {
                finish_row(row, activation, Dropout::NONE);
            }
        }
    }
}

impl<'a> Input<'a> {
    fn new(values: &'a [f32], inputs: usize, tasks: &[Task]) -> Self {
        let int8 = |task: &Task| matches!(task.map.weight.0, Kind::Int8(_));
        let quantized = tasks.iter().any(int8);
        Self {
            values,
            rows: values.len() / inputs,
            quantized: quantized.then(|| QuantizedRows::new(values, inputs)),
        }
    }
}
