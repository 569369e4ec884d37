use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use candle_core::backprop::GradStore;
use candle_core::{Result, Tensor, Var};
use rayon::prelude::*;

use crate::cpu;
use crate::gemm::Write;

/// A trainable tensor with its name and the buffer in which its gradient accumulates. Cloning
/// shares it.
#[derive(Clone)]
pub struct Param(Arc<Inner>);

struct Inner {
    name: String,
    value: Var,
    gradient: Tensor,
    /// Nothing was accumulated since the gradient was cleared. The buffer holds old values.
    fresh: AtomicBool,
    follows: bool,
}

impl Param {
    pub fn new(name: impl Into<String>, value: &Tensor) -> Result<Self> {
        Self::of_kind(name.into(), value, false)
    }

    /// A statistic that a model maintains during training, such as a moving average. Its gradient is the
    /// difference from its target. An update moves it by a tenth of that, whatever the learning rate. The
    /// gradient is not part of the norm for clipping.
    pub fn follower(name: impl Into<String>, value: &Tensor) -> Result<Self> {
        Self::of_kind(name.into(), value, true)
    }

    fn of_kind(name: String, value: &Tensor, follows: bool) -> Result<Self> {
        Ok(Self(Arc::new(Inner {
            name,
            value: Var::from_tensor(value)?,
            gradient: value.zeros_like()?,
            fresh: AtomicBool::new(true),
            follows,
        })))
    }

    /// Whether it is a [`Param::follower`].
    pub fn follows(&self) -> bool {
        self.0.follows
    }

    /// The update of a [`Param::follower`].
    pub fn follow(&self, gradient: &Tensor) -> Result<()> {
        self.set(&(self.value().detach() - (gradient * 0.1)?)?)
    }

    pub fn name(&self) -> &str {
        &self.0.name
    }

    pub fn value(&self) -> &Tensor {
        self.0.value.as_tensor()
    }

    /// Replaces the value; the shape stays.
    pub fn set(&self, value: &Tensor) -> Result<()> {
        self.0.value.set(value)
    }

    /// What backward passes have accumulated since the last [`Param::clear`]; `None` if none ran.
    pub fn gradient(&self) -> Option<&Tensor> {
        (!self.0.fresh.load(Ordering::Acquire)).then_some(&self.0.gradient)
    }

    /// Clears the gradient. The next backward pass overwrites the buffer.
    pub fn clear(&self) {
        self.0.fresh.store(true, Ordering::Release);
    }

    /// Gives it a gradient of zero if it has none: it is not part of what is computed.
    pub fn add_zero(&self) -> Result<()> {
        if self.gradient().is_none() {
            self.0.gradient.zero_set()?;
            self.0.fresh.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// Copies elements of the gradient, from `start` on. They are zero if no backward pass ran.
    pub fn read_gradient(&self, start: usize, values: &mut [f32]) -> Result<()> {
        match self.gradient() {
            Some(gradient) => cpu::read(gradient, start, values),
            None => {
                values.fill(0.0);
                Ok(())
            }
        }
    }

    /// Replaces elements of the gradient, from `start` on.
    pub fn write_gradient(&self, start: usize, values: &[f32]) -> Result<()> {
        cpu::write(&self.0.gradient, start, values)?;
        self.0.fresh.store(false, Ordering::Release);
        Ok(())
    }

    /// Copies elements of the value, from `start` on.
    pub fn read_value(&self, start: usize, values: &mut [f32]) -> Result<()> {
        cpu::read(self.value(), start, values)
    }

    /// Replaces elements of the value, from `start` on.
    pub fn write_value(&self, start: usize, values: &[f32]) -> Result<()> {
        cpu::write(self.value(), start, values)
    }

    /// Elements of the gradient, as a tensor of one dimension. They are zero if no backward pass ran.
    pub fn gradient_part(&self, range: Range<usize>) -> Result<Tensor> {
        let part = cpu::part(&self.0.gradient, range)?;
        match self.gradient() {
            Some(_) => Ok(part),
            None => part.zeros_like(), // the buffer holds old values
        }
    }

    /// Replaces elements of the gradient, from `start` on, by a tensor of one dimension.
    pub fn set_gradient_part(&self, start: usize, part: &Tensor) -> Result<()> {
        cpu::set_part(&self.0.gradient, start, part)?;
        self.0.fresh.store(false, Ordering::Release);
        Ok(())
    }

    /// Elements of the value, as a tensor of one dimension.
    pub fn value_part(&self, range: Range<usize>) -> Result<Tensor> {
        cpu::part(&self.value().detach(), range)
    }

    /// Replaces elements of the value, from `start` on, by a tensor of one dimension.
    pub fn set_value_part(&self, start: usize, part: &Tensor) -> Result<()> {
        cpu::set_part(self.value(), start, part)
    }

    /// A hash of the bits of the value. A change of one element always changes it.
    pub fn fingerprint(&self) -> Result<u64> {
        let mut values = vec![0.0; self.value().elem_count()];
        self.read_value(0, &mut values)?;
        let weighted = values.par_iter().enumerate().map(|(i, x)| {
            // An odd factor, which has an inverse.
            let factor = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            factor.wrapping_mul(x.to_bits().into())
        });
        Ok(weighted.reduce(|| 0, u64::wrapping_add))
    }

    /// Lets a fused backward pass add to the gradient in place, or overwrite it if it is the first.
    pub(crate) fn accumulate(&self, add: impl FnOnce(&mut [f32], Write)) -> Result<()> {
        let write = Write::first(self.0.fresh.swap(false, Ordering::AcqRel));
        cpu::edit(&self.0.gradient, |gradient| add(gradient, write))
    }

    /// Adds the gradient that candle computed, if there is one.
    pub(crate) fn absorb_from(&self, store: &GradStore) -> Result<()> {
        let Some(gradient) = store.get(self.value()) else {
            return Ok(());
        };
        let sum = match self.gradient() {
            Some(sum) => (sum + gradient)?,
            None => gradient.clone(),
        };
        self.0.gradient.slice_set(&sum.contiguous()?, 0, 0)?;
        self.0.fresh.store(false, Ordering::Release);
        Ok(())
    }
}

impl fmt::Debug for Param {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} {:?}", self.name(), self.value().dims())
    }
}

/// Runs the backward pass from a scalar and accumulates its gradient with respect to each parameter. Fused
/// operations write to the buffers of the parameters during candle's backward pass. The gradients of
/// composed operations are in candle's store and are added afterwards.
pub(crate) fn backward<'a>(
    loss: &Tensor,
    params: impl IntoIterator<Item = &'a Param>,
) -> Result<()> {
    let gradients = loss.backward()?;
    for param in params {
        param.absorb_from(&gradients)?;
    }
    Ok(())
}
