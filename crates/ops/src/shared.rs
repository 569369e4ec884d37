//! A tensor that is the input of many operations, such as the keys that a decoder attends to at every step.
//!
//! Candle would allocate a gradient of the full size for each operation and add them one by one. Here the
//! operations accumulate in one buffer. In the graph a token takes the place of the tensor: each operation
//! has the token as an input, so the backward pass reaches the tensor after all of them.

use std::sync::{Arc, Mutex};

use candle_core::{CpuStorage, CustomOp1, DType, Layout, Result, Shape, Tensor};

use crate::buffer::Buffer;
use crate::cpu;
use crate::pass::{Kernels, Pass};

#[derive(Clone)]
pub struct Shared {
    value: Tensor,
    token: Tensor,
    gradient: Arc<Mutex<Option<Buffer>>>,
}

impl Shared {
    pub fn new(value: &Tensor, pass: &Pass) -> Result<Self> {
        let value = value.contiguous()?;
        let gradient = Arc::new(Mutex::new(None));
        let token = match (pass.kernels, pass.trains()) {
            (Kernels::Fused, true) => value.apply_op1(Collect(gradient.clone()))?,
            _ => Tensor::zeros(1, DType::F32, value.device())?,
        };
        Ok(Self {
            value,
            token,
            gradient,
        })
    }

    pub fn value(&self) -> &Tensor {
        &self.value
    }

    /// The input of fused operations that use it.
    pub(crate) fn token(&self) -> &Tensor {
        &self.token
    }

    /// Lets the backward pass of an operation add to the gradient, which is initially zero.
    pub(crate) fn accumulate(&self, add: impl FnOnce(&mut [f32])) {
        let mut gradient = self.gradient.lock().unwrap_or_else(|e| e.into_inner());
        add(gradient.get_or_insert_with(|| Buffer::zeros(self.value.elem_count())));
    }

    /// The gradient of the token, which the backward pass of an operation returns.
    pub(crate) fn token_gradient(&self) -> Result<Tensor> {
        self.token.zeros_like()
    }
}

struct Collect(Arc<Mutex<Option<Buffer>>>);

impl CustomOp1 for Collect {
    fn name(&self) -> &'static str {
        "shared"
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        Ok((CpuStorage::F32(vec![0.0]), 1.into()))
    }

    fn bwd(&self, value: &Tensor, _: &Tensor, _: &Tensor) -> Result<Option<Tensor>> {
        let gradient = self.0.lock().unwrap_or_else(|e| e.into_inner()).take();
        match gradient {
            Some(gradient) => cpu::like(gradient.to_vec(), value).map(Some),
            None => value.zeros_like().map(Some),
        }
    }
}
