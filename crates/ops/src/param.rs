use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use candle_core::backprop::GradStore;
use candle_core::{Result, Tensor, Var};

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
