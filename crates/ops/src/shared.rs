//! A tensor that many operations read: the keys that a decoder attends to at every step, say.
//!
//! Candle would make a gradient of the tensor's whole size for each reader and add them up one by one.
//! Here readers add to one buffer in place, and the graph holds a token in the tensor's stead: each reader
//! is a function of it, so that backward comes to the tensor when all of them are done.

use std::sync::{Arc, Mutex};

use candle_core::{CpuStorage, CustomOp1, DType, Layout, Result, Shape, Tensor};

use crate::buffer::Buffer;
use crate::cpu;
use crate::pass::{Pass, Path};

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
        let token = match (pass.path, pass.trains()) {
            (Path::Fused, true) => value.apply_op1(Collect(gradient.clone()))?,
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

    /// What a fused operation that reads it has for an input.
    pub(crate) fn token(&self) -> &Tensor {
        &self.token
    }

    /// Lets the backward of a reader add to the gradient, which begins with zeros.
    pub(crate) fn accumulate(&self, add: impl FnOnce(&mut [f32])) {
        let mut gradient = self.gradient.lock().unwrap_or_else(|e| e.into_inner());
        add(gradient.get_or_insert_with(|| Buffer::zeros(self.value.elem_count())));
    }

    /// The gradient of the token, for the backward of a reader to return.
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
