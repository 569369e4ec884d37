//! Compares fused with composed operations: outputs, gradients of inputs and gradients of parameters.

use attend_batch::Segments;
use candle_core::{Device, Result, Shape, Tensor, Var};

use crate::random::{self, Key, Site};
use crate::{DropoutSite, Kernels, Param, Pass, RowDropout, Weight};

/// A trainable weight with normal values that depend on its name alone.
pub(crate) fn weight(name: &str, shape: impl Into<Shape>) -> Weight {
    let key = Key::new(7, 0, Site::named(name));
    let value = random::tensor(shape, &Device::Cpu, |i| key.normal(i)).unwrap();
    Param::new(name, &value).unwrap().into()
}

/// That of the rows of one sentence.
pub(crate) fn dropout(rows: usize, rate: f32, pass: &Pass) -> RowDropout {
    DropoutSite::new(rate, "test").of_rows(&Segments::packed([rows]), pass)
}

pub(crate) fn bits(tensor: &Tensor) -> Vec<u32> {
    let values = tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap();
    values.into_iter().map(f32::to_bits).collect()
}

pub(crate) fn assert_close(a: &Tensor, b: &Tensor, tolerance: f32) {
    assert_eq!(a.dims(), b.dims());
    let flat = |t: &Tensor| t.flatten_all().unwrap().to_vec1::<f32>().unwrap();
    let (a, b) = (flat(a), flat(b));
    let scale = b.iter().fold(1.0f32, |m, x| m.max(x.abs()));
    for (i, (a, b)) in a.iter().zip(&b).enumerate() {
        let error = (a - b).abs() / scale;
        assert!(error <= tolerance, "element {i}: {a} and {b}");
    }
}

pub(crate) struct Case {
    params: Vec<Param>,
    inputs: Vec<Var>,
}

/// The output and the gradients of one implementation.
struct Outcome {
    output: Tensor,
    gradients: Vec<Tensor>,
}

impl Case {
    pub(crate) fn new(weights: &[Weight]) -> Self {
        let params = weights.iter().map(|weight| weight.param().cloned());
        Self {
            params: params.collect::<Option<_>>().expect("trainable weights"),
            inputs: Vec::new(),
        }
    }

    pub(crate) fn input(mut self, shape: impl Into<Shape>) -> Self {
        let input = weight(&format!("input {}", self.inputs.len()), shape);
        self.inputs.push(Var::from_tensor(input.value()).unwrap());
        self
    }

    /// `times` is the number of backward passes through the same graph.
    fn run(
        &self,
        kernels: Kernels,
        times: usize,
        op: &dyn Fn(&[Tensor], &Pass) -> Result<Tensor>,
    ) -> Result<Outcome> {
        let inputs: Vec<Tensor> = self.inputs.iter().map(|v| v.as_tensor().clone()).collect();
        let pass = Pass::train(kernels, 5, 9);
        let output = op(&inputs, &pass)?;
        let weights = weight("weights of the loss", output.shape())
            .value()
            .detach();
        let loss = output.mul(&weights)?.sum_all()?;
        for param in &self.params {
            param.clear();
        }
        let store = loss.backward()?;
        for param in &self.params {
            param.absorb_from(&store)?;
        }
        for _ in 1..times {
            crate::backward(&loss, &self.params)?;
        }
        // And another graph, scaled by two.
        let again = op(&inputs, &pass)?.mul(&weights)?.sum_all()?;
        crate::backward(&(again * 2.0)?, &self.params)?;
        let mut gradients = Vec::new();
        for input in &self.inputs {
            gradients.push(store.get(input).expect("a gradient of the input").clone());
        }
        for param in &self.params {
            gradients.push(
                param
                    .gradient()
                    .expect("a gradient of the parameter")
                    .copy()?,
            );
        }
        Ok(Outcome { output, gradients })
    }

    /// Runs the operation with both kernels and compares outputs and gradients.
    pub(crate) fn check(&self, op: impl Fn(&[Tensor], &Pass) -> Result<Tensor>) {
        self.compare(2, op);
    }

    /// The same for an operation whose backward pass frees its memory and runs once.
    pub(crate) fn check_once(&self, op: impl Fn(&[Tensor], &Pass) -> Result<Tensor>) {
        self.compare(1, op);
    }

    fn compare(&self, times: usize, op: impl Fn(&[Tensor], &Pass) -> Result<Tensor>) {
        let [fused, composed] = Kernels::ALL.map(|kernels| self.run(kernels, times, &op).unwrap());
        assert_close(&fused.output, &composed.output, 2e-6);
        for (fused, composed) in fused.gradients.iter().zip(&composed.gradients) {
            assert_close(fused, composed, 5e-6);
        }
    }
}
