//! Affine maps, with activation and dropout.
//!
//! n rows, i inputs, o outputs:  y = dropout(f(x Wᵀ + b)),  x `[n, i]`, W `[o, i]`, b `[o]`.

use std::sync::Mutex;

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use crate::buffer::Buffer;
use crate::cpu::{slice, view};
use crate::gemm::{Mat, MatMut, Threads, Write, product, product_then};
use crate::isa::kernel;
use crate::packed::{self, PackedMap};
use crate::pass::{Kernels, Pass};
use crate::profile::{self, Part};
use crate::random::{Dropout, RowDropout};
use crate::simd::{self, TASK_ROWS, sigmoid, tanh};
use crate::{Weight, cpu};

/// The weights of one affine map.
#[derive(Clone, Debug)]
pub struct Linear {
    /// `[o, i]`
    pub weight: Weight,
    /// `[o]`
    pub bias: Option<Weight>,
}

/// The non-linearity of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    Relu,
    /// Exact, with the error function.
    Gelu,
    /// x · sigmoid(x).
    Swish,
    Tanh,
}

/// Several affine maps of the same input, their outputs side by side: `[n, i]` to `[n, Σ o]`.
pub fn linear(x: &Tensor, layers: &[&Linear], pass: &Pass) -> Result<Tensor> {
    match pass.kernels {
        Kernels::Composed => {
            let outputs: Result<Vec<_>> = layers.iter().map(|layer| affine(x, layer)).collect();
            Tensor::cat(&outputs?, 1)
        }
        Kernels::Fused => fused(x, layers, None, &RowDropout::NONE, pass),
    }
}

/// An affine map followed by an activation and dropout: the inner half of a feed-forward layer.
pub fn linear_activated(
    x: &Tensor,
    layer: &Linear,
    activation: Activation,
    dropout: &RowDropout,
    pass: &Pass,
) -> Result<Tensor> {
    match pass.kernels {
        Kernels::Composed => {
            let z = affine(x, layer)?;
            let y = match activation {
                Activation::Relu => z.relu()?,
                Activation::Gelu => z.gelu_erf()?,
                Activation::Swish => z.silu()?,
                Activation::Tanh => z.tanh()?,
            };
            dropout.composed(&y)
        }
        Kernels::Fused => fused(x, &[layer], Some(activation), dropout, pass),
    }
}

/// The logits of every word except the last, which is padding: `[n, d]` to `[n, v - 1]`. For decoding: no
/// graph is recorded.
pub fn project(hidden: &Tensor, output: &Linear, pass: &Pass) -> Result<Tensor> {
    let (v, d) = output.weight.dims2()?;
    let (n, words) = (hidden.dim(0)?, v - 1);
    if let Some(matrix) = output.weight.as_packed() {
        let mut logits = vec![0.0; n * words];
        let map = PackedMap {
            weight: matrix,
            bias: output.bias.as_ref(),
            outputs: words,
        };
        packed::forward(&view(hidden)?, &[map], None, &mut logits)?;
        return Tensor::from_vec(logits, (n, words), hidden.device());
    }
    if pass.kernels == Kernels::Composed {
        let detached = |weight: &Weight| weight.value().detach().narrow(0, 0, words);
        let logits = hidden.detach().matmul(&detached(&output.weight)?.t()?)?;
        return match &output.bias {
            Some(bias) => logits.broadcast_add(&detached(bias)?),
            None => Ok(logits),
        };
    }
    let (h, w) = (view(hidden)?, view(output.weight.value())?);
    let mut logits = vec![0.0; n * words];
    let (h, w) = (Mat::new(&h, n, d), Mat::new(&w[..words * d], words, d));
    let dst = MatMut::new(&mut logits, n, words);
    product(dst, Write::Over, h, w.t(), Threads::All);
    if let Some(bias) = &output.bias {
        let bias = &view(bias.value())?[..words];
        let rows = logits.par_chunks_exact_mut(words);
        rows.for_each(|row| {
            row.iter_mut()
                .zip(bias)
                .for_each(|(logit, bias)| *logit += bias)
        });
    }
    Tensor::from_vec(logits, (n, words), hidden.device())
}

fn affine(x: &Tensor, layer: &Linear) -> Result<Tensor> {
    let y = x.matmul(&layer.weight.value().t()?)?;
    match &layer.bias {
        Some(bias) => y.broadcast_add(bias.value()),
        None => Ok(y),
    }
}

fn fused(
    x: &Tensor,
    layers: &[&Linear],
    activation: Option<Activation>,
    dropout: &RowDropout,
    pass: &Pass,
) -> Result<Tensor> {
    if layers
        .iter()
        .any(|layer| layer.weight.as_packed().is_some())
    {
        let (n, width) = (x.dim(0)?, outputs(layers)?);
        let mut y = vec![0.0; n * width];
        forward(&view(x)?, layers, activation, dropout, &mut y)?;
        return Tensor::from_vec(y, (n, width), x.device());
    }
    let recorded = recorded_by(layers).value();
    let op = LinearOp {
        layers: layers.iter().map(|&layer| layer.clone()).collect(),
        activation,
        dropout: dropout.clone(),
        before: Mutex::new(None),
    };
    if pass.trains() {
        x.apply_op2(recorded, op)
    } else {
        x.apply_op2_no_bwd(recorded, &op)
    }
}

/// The weight that candle records an operation by: the first that is trainable, or else the first.
pub(crate) fn recorded_by<'a>(layers: &[&'a Linear]) -> &'a Weight {
    let weights = layers.iter().map(|layer| &layer.weight);
    let biases = layers.iter().filter_map(|layer| layer.bias.as_ref());
    let mut all = weights.chain(biases);
    let trainable = all.find(|weight| weight.is_trainable());
    trainable.unwrap_or(&layers[0].weight)
}

/// Its second input is a weight, so that candle records the operation even if x leads to no variable.
/// Gradients of weights go to their own buffers.
struct LinearOp {
    layers: Vec<Linear>,
    activation: Option<Activation>,
    dropout: RowDropout,
    /// What [`forward`] returns for the backward pass.
    before: Mutex<Option<Buffer>>,
}

impl CustomOp2 for LinearOp {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (n, _) = x_layout.shape().dims2()?;
        let layers: Vec<&Linear> = self.layers.iter().collect();
        let width = outputs(&layers)?;
        let mut y = vec![0.0; n * width];
        let x = slice(x, x_layout)?;
        let before = forward(x, &layers, self.activation, &self.dropout, &mut y)?;
        *self.before.lock().unwrap_or_else(|e| e.into_inner()) = before;
        Ok((CpuStorage::F32(y), (n, width).into()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        _: &Tensor,
        y: &Tensor,
        dy: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let layers: Vec<&Linear> = self.layers.iter().collect();
        let mut dx = vec![0.0; x.elem_count()];
        let (xs, dys) = (view(x)?, view(dy)?);
        if let Some(activation) = self.activation {
            let before = self.before.lock().unwrap_or_else(|e| e.into_inner());
            let mut dz = Buffer::copy_of(&dys);
            let y = view(y)?;
            let kept = before.as_deref().unwrap_or(&y);
            before_activation(&mut dz, kept, outputs(&layers)?, activation, &self.dropout);
            backward(&xs, &layers, &dz, InputGradient::over(&mut dx))?;
        } else {
            backward(&xs, &layers, &dys, InputGradient::over(&mut dx))?;
        }
        Ok((Some(cpu::like(dx, x)?), None))
    }
}

/// The total width of the outputs.
pub(crate) fn outputs(layers: &[&Linear]) -> Result<usize> {
    let outputs = |layer: &&Linear| Ok(layer.weight.dims2()?.0);
    layers.iter().map(outputs).sum()
}

/// y = dropout(f(x Wᵀ + b)), for several maps side by side. Returns z = x Wᵀ + b if the gradient of the
/// activation needs it. The gradient of ReLU is computed from y.
pub(crate) fn forward(
    x: &[f32],
    layers: &[&Linear],
    activation: Option<Activation>,
    dropout: &RowDropout,
    y: &mut [f32],
) -> Result<Option<Buffer>> {
    let width = outputs(layers)?;
    let maps = layers.iter().map(|layer| PackedMap::of(layer));
    if let Some(maps) = maps.collect::<Option<Vec<_>>>() {
        packed::forward(x, &maps, activation, y)?; // they are never trained, so there is no dropout
        return Ok(None);
    }
    let keeps = activation.is_some_and(|activation| activation != Activation::Relu);
    let mut first = 0;
    for layer in layers {
        let (o, i) = layer.weight.value().dims2()?;
        let n = x.len() / i;
        let weight = view(layer.weight.value())?;
        let bias = layer
            .bias
            .as_ref()
            .map(|bias| view(bias.value()))
            .transpose()?;
        let bias: Option<&[f32]> = bias.as_deref();
        let dst = MatMut::columns(y, n, width, first, o);
        let (x, weight) = (Mat::new(x, n, i), Mat::new(&weight, o, i).t());
        let _time = profile::time(Part::LinearForward);
        product_then(dst, Write::Over, x, weight, Threads::All, |row, y| {
            if let Some(bias) = bias {
                add_row(y, bias);
            }
            if !keeps {
                finish_row(y, activation, dropout.row(row));
            }
        });
        first += o;
    }
    if !keeps {
        return Ok(None);
    }
    let before = Buffer::copy_of(y);
    y.par_chunks_mut(TASK_ROWS * width)
        .enumerate()
        .for_each(|(i, rows)| {
            for (row, y) in rows.chunks_exact_mut(width).enumerate() {
                finish_row(y, activation, dropout.row(i * TASK_ROWS + row));
            }
        });
    Ok(Some(before))
}

/// The destination of the gradient of an operation's input.
pub(crate) struct InputGradient<'a> {
    pub(crate) values: &'a mut [f32],
    pub(crate) write: Write,
}

impl<'a> InputGradient<'a> {
    /// Replaces the values.
    pub(crate) fn over(values: &'a mut [f32]) -> Self {
        let write = Write::Over;
        Self { values, write }
    }
}

/// From dz `[n, Σ o]`, accumulates the gradients of the weights and writes that of x.
pub(crate) fn backward(x: &[f32], layers: &[&Linear], dz: &[f32], dx: InputGradient) -> Result<()> {
    let InputGradient { values: dx, write } = dx;
    let width = outputs(layers)?;
    let n = dz.len() / width;
    let mut biases = layers.iter().filter_map(|layer| layer.bias.as_ref());
    let bias_sums = biases.any(Weight::is_trainable).then(|| {
        let _time = profile::time(Part::LinearWeight);
        let mut sums = Buffer::any(width);
        simd::column_sums(dz, width, &mut sums, Write::Over);
        sums
    });
    let mut first = 0;
    for layer in layers {
        let (o, i) = layer.weight.value().dims2()?;
        let dz = Mat::columns(dz, n, width, first, o);
        layer.weight.accumulate(|dw, write| {
            let dw = MatMut::new(dw, o, i);
            let _time = profile::time(Part::LinearWeight);
            product(dw, write, dz.t(), Mat::new(x, n, i), Threads::All);
        })?;
        if let (Some(bias), Some(sums)) = (&layer.bias, &bias_sums) {
            let sums = &sums[first..first + o];
            bias.accumulate(|db, write| simd::add_scaled(db, write, 1.0, sums))?;
        }
        let weight = view(layer.weight.value())?;
        let dst = MatMut::new(dx, n, i);
        let write = if first == 0 { write } else { Write::Add };
        let _time = profile::time(Part::LinearInput);
        product(dst, write, dz, Mat::new(&weight, o, i), Threads::All);
        first += o;
    }
    Ok(())
}

kernel! {
    pub(crate) fn add_row(y: &mut [f32], bias: &[f32]) {
        for (y, b) in y.iter_mut().zip(bias) {
            *y += b;
        }
    }
}

kernel! {
    /// y = dropout(f(y)).
    pub(crate) fn finish_row(y: &mut [f32], activation: Option<Activation>, dropout: Dropout) {
        match activation {
            None => {}
            // Not `max`, which would turn NaN into 0.
            Some(Activation::Relu) => y.iter_mut().for_each(|y| *y = if *y < 0.0 { 0.0 } else { *y }),
            Some(Activation::Gelu) => y.iter_mut().for_each(|y| *y *= normal_cdf(*y)),
            Some(Activation::Swish) => y.iter_mut().for_each(|y| *y *= sigmoid(*y)),
            Some(Activation::Tanh) => y.iter_mut().for_each(|y| *y = tanh(*y)),
        }
        if !dropout.is_none() {
            for (j, y) in y.iter_mut().enumerate() {
                *y *= dropout.factor(j as u32);
            }
        }
    }
}

/// dz = dy · dropout · f'(z), in place. `kept` is z; for ReLU it is y, which is positive exactly
/// where neither the activation nor dropout made it zero.
pub(crate) fn before_activation(
    dz: &mut [f32],
    kept: &[f32],
    width: usize,
    activation: Activation,
    dropout: &RowDropout,
) {
    let _time = profile::time(Part::Activation);
    let size = TASK_ROWS * width;
    let chunks = dz
        .par_chunks_mut(size)
        .zip(kept.par_chunks(size))
        .enumerate();
    chunks.for_each(|(i, (dz, kept))| {
        let rows = dz.chunks_exact_mut(width).zip(kept.chunks_exact(width));
        for (row, (dz, kept)) in rows.enumerate() {
            before_activation_row(dz, kept, activation, dropout.row(i * TASK_ROWS + row));
        }
    });
}

kernel! {
    fn before_activation_row(dz: &mut [f32], kept: &[f32], activation: Activation, dropout: Dropout) {
        let values = dz.iter_mut().zip(kept);
        match activation {
            Activation::Relu => {
                let scale = dropout.scale();
                values.for_each(|(dz, y)| *dz = if *y > 0.0 { *dz * scale } else { 0.0 });
            }
            Activation::Gelu => values.enumerate().for_each(|(j, (dz, z))| {
                let density = (-0.5 * z * z).exp() * 0.398_942_3; // 1 / √(2π)
                *dz *= dropout.factor(j as u32) * (normal_cdf(*z) + z * density);
            }),
            Activation::Swish => values.enumerate().for_each(|(j, (dz, z))| {
                let s = sigmoid(*z);
                *dz *= dropout.factor(j as u32) * (s + z * s * (1.0 - s));
            }),
            Activation::Tanh => values.enumerate().for_each(|(j, (dz, z))| {
                let t = tanh(*z);
                *dz *= dropout.factor(j as u32) * (1.0 - t * t);
            }),
        }
    }
}

#[inline(always)]
fn normal_cdf(z: f32) -> f32 {
    0.5 * (1.0 + candle_core::cpu::erf::erf_f32(z * std::f32::consts::FRAC_1_SQRT_2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, dropout, weight};

    fn layer(name: &str, o: usize, i: usize) -> Linear {
        Linear {
            weight: weight(&format!("{name}.weight"), (o, i)),
            bias: Some(weight(&format!("{name}.bias"), o)),
        }
    }

    #[test]
    fn fused_equals_composed_for_one_and_for_several_maps() {
        for (n, i, o) in [(1, 1, 1), (3, 5, 7), (65, 33, 40), (130, 24, 72)] {
            let (a, mut b) = (layer("a", o, i), layer("b", o + 1, i));
            let params = [&a, &b].map(|l| [l.weight.clone(), l.bias.clone().unwrap()]);
            let both = Case::new(&params.concat()).input((n, i));
            both.check(|x, pass| linear(&x[0], &[&a, &b], pass));
            b.bias = None;
            let one = Case::new(&[b.weight.clone()]).input((n, i));
            one.check(|x, pass| linear(&x[0], &[&b], pass));
        }
    }

    #[test]
    fn fused_equals_composed_for_every_activation_with_and_without_dropout() {
        use Activation::{Gelu, Relu, Swish, Tanh};
        for activation in [Relu, Gelu, Swish, Tanh] {
            for rate in [0.0, 0.3] {
                let layer = layer("a", 50, 20);
                let params = [layer.weight.clone(), layer.bias.clone().unwrap()];
                Case::new(&params).input((70, 20)).check(|x, pass| {
                    linear_activated(&x[0], &layer, activation, &dropout(70, rate, pass), pass)
                });
            }
        }
    }

    #[test]
    fn a_weight_gets_a_gradient_if_the_input_is_constant() -> Result<()> {
        let layer = layer("a", 4, 3);
        let x = Tensor::ones((2, 3), candle_core::DType::F32, &candle_core::Device::Cpu)?;
        let y = linear(&x, &[&layer], &Pass::train(Kernels::Fused, 0, 0))?;
        crate::backward(&y.sum_all()?, layer.weight.param())?;
        let gradient = layer
            .weight
            .param()
            .unwrap()
            .gradient()
            .expect("a gradient");
        assert_eq!(gradient.sum_all()?.to_scalar::<f32>()?, 24.0);
        Ok(())
    }

    #[test]
    fn project_omits_the_padding_word_with_both_kernels() -> Result<()> {
        let h = weight("h", (5, 6)).value().detach();
        for bias in [None, Some(weight("bias", 9))] {
            let output = Linear {
                weight: weight("table", (9, 6)),
                bias,
            };
            let [fused, composed] =
                Kernels::ALL.map(|kernels| project(&h, &output, &Pass::eval(kernels)));
            let (fused, composed) = (fused?, composed?);
            assert_eq!(fused.dims(), [5, 8]);
            crate::testing::assert_close(&fused, &composed, 1e-6);
        }
        Ok(())
    }
}
