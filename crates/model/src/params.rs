use std::collections::{BTreeMap, HashMap};

use attend_ops::random::{self, Key};
use attend_ops::{Linear, Norm, Param, Site};
use candle_core::{DType, Device, Result, Shape, Tensor};
use thiserror::Error;

/// The parameters of a model, by name. Names are those of Hugging Face's MarianMT where it has one;
/// their order is alphabetical, always.
#[derive(Clone, Debug)]
pub struct Params(BTreeMap<String, Param>);

/// Why tensors do not fit a model.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum LoadError {
    #[error("tensor `{0}` is missing")]
    Missing(String),
    #[error("tensor `{0}` belongs to no parameter")]
    Unknown(String),
    #[error("tensor `{name}` has shape {found:?} where the model has {expected:?}")]
    Shape {
        name: String,
        found: Vec<usize>,
        expected: Vec<usize>,
    },
    #[error("{0}")]
    Candle(String),
}

impl Params {
    pub fn iter(&self) -> impl Iterator<Item = &Param> {
        self.0.values()
    }

    pub fn get(&self, name: &str) -> Option<&Param> {
        self.0.get(name)
    }

    /// Numbers in all tensors together.
    pub fn count(&self) -> usize {
        self.iter().map(|param| param.value().elem_count()).sum()
    }

    /// Sets every parameter; nothing changes unless names and shapes fit exactly.
    pub fn load(&self, tensors: &HashMap<String, Tensor>) -> std::result::Result<(), LoadError> {
        if let Some(name) = tensors
            .keys()
            .filter(|name| !self.0.contains_key(*name))
            .min()
        {
            return Err(LoadError::Unknown(name.clone()));
        }
        for param in self.iter() {
            let name = param.name().to_string();
            let Some(tensor) = tensors.get(&name) else {
                return Err(LoadError::Missing(name));
            };
            if tensor.shape() != param.value().shape() {
                return Err(LoadError::Shape {
                    name,
                    found: tensor.dims().to_vec(),
                    expected: param.value().dims().to_vec(),
                });
            }
        }
        for param in self.iter() {
            let result = param.set(&tensors[param.name()]);
            result.map_err(|error| LoadError::Candle(error.to_string()))?;
        }
        Ok(())
    }
}

/// Makes parameters with their initial values, which depend on (seed, name) alone; without a seed they
/// are zeros, for others to replace.
pub(crate) struct Init<'a> {
    seed: Option<u64>,
    pub(crate) device: &'a Device,
    params: BTreeMap<String, Param>,
}

impl<'a> Init<'a> {
    pub(crate) fn new(seed: Option<u64>, device: &'a Device) -> Self {
        let params = BTreeMap::new();
        Self {
            seed,
            device,
            params,
        }
    }

    pub(crate) fn finish(self) -> Params {
        Params(self.params)
    }

    fn add(
        &mut self,
        name: String,
        shape: impl Into<Shape>,
        value: impl Fn(u64) -> f64,
    ) -> Result<Param> {
        let value = match self.seed {
            Some(_) => random::tensor(shape, self.device, value)?,
            None => Tensor::zeros(shape, DType::F32, self.device)?,
        };
        self.keep(Param::new(&name, &value)?)
    }

    fn keep(&mut self, param: Param) -> Result<Param> {
        let taken = self.params.insert(param.name().to_string(), param.clone());
        assert!(taken.is_none(), "two parameters named {}", param.name());
        Ok(param)
    }

    fn key(&self, name: &str) -> Key {
        Key::new(self.seed.unwrap_or_default(), 0, Site::named(name))
    }

    /// A matrix by Glorot and Bengio's rule ("Xavier", 2010), with a bias of zero.
    pub(crate) fn linear(&mut self, name: &str, inputs: usize, outputs: usize) -> Result<Linear> {
        let bias = |_| 0.0;
        self.affine(name, inputs, outputs, bias)
    }

    /// The same with another bias.
    pub(crate) fn affine(
        &mut self,
        name: &str,
        inputs: usize,
        outputs: usize,
        bias: impl Fn(u64) -> f64,
    ) -> Result<Linear> {
        let Linear { weight, .. } = self.matrix(name, inputs, outputs)?;
        let bias = Some(self.add(format!("{name}.bias"), outputs, bias)?);
        Ok(Linear { weight, bias })
    }

    /// The same without a bias.
    pub(crate) fn matrix(&mut self, name: &str, inputs: usize, outputs: usize) -> Result<Linear> {
        let weight = self.uniform(
            format!("{name}.weight"),
            (outputs, inputs),
            inputs + outputs,
        )?;
        Ok(Linear { weight, bias: None })
    }

    /// What a hidden layer of `width` is multiplied with to make one number.
    pub(crate) fn vector(&mut self, name: &str, width: usize) -> Result<Param> {
        self.uniform(name.to_string(), width, width + 1)
    }

    pub(crate) fn scalar(&mut self, name: &str, value: f64) -> Result<Param> {
        self.add(name.to_string(), 1, |_| value)
    }

    /// A number that is not trained, but follows what its gradient says (see [`Param::follower`]).
    pub(crate) fn follower(&mut self, name: &str) -> Result<Param> {
        let zero = Tensor::zeros(1, DType::F32, self.device)?;
        self.keep(Param::follower(name, &zero)?)
    }

    fn uniform(
        &mut self,
        name: String,
        shape: impl Into<Shape>,
        inputs_and_outputs: usize,
    ) -> Result<Param> {
        let (key, bound) = (self.key(&name), (6.0 / inputs_and_outputs as f64).sqrt());
        self.add(name, shape, |i| bound * (2.0 * key.uniform(i) - 1.0))
    }

    pub(crate) fn norm(&mut self, name: &str, d: usize) -> Result<Norm> {
        let weight = self.add(format!("{name}.weight"), d, |_| 1.0)?;
        let bias = self.add(format!("{name}.bias"), d, |_| 0.0)?;
        Ok(Norm { weight, bias })
    }

    /// Embeddings `[v, d]`, normal with variance 1/d, so that times √d they have variance one. The
    /// last row, padding, is zero.
    pub(crate) fn table(&mut self, name: &str, v: usize, d: usize) -> Result<Param> {
        let (key, padding) = (self.key(name), ((v - 1) * d) as u64);
        let deviation = 1.0 / (d as f64).sqrt();
        self.add(name.to_string(), (v, d), |i| {
            if i < padding {
                deviation * key.normal(i)
            } else {
                0.0
            }
        })
    }
}
