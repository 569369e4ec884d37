use std::collections::{BTreeMap, HashMap};

use attend_ops::random::{self, Key};
use attend_ops::{LayerNorm, Linear, PackedWeight, Param, Site, Weight};
use candle_core::{DType, Device, Result, Shape, Tensor, bail};
use thiserror::Error;

/// The weights of a model, by name. Names are those of Hugging Face's MarianMT where it has one; their order is
/// alphabetical, always.
#[derive(Clone, Debug)]
pub struct Weights(BTreeMap<String, Weight>);

/// Why tensors do not fit a model.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum LoadError {
    #[error("tensor `{0}` is missing")]
    Missing(String),
    #[error("tensor `{0}` belongs to no weight of the model")]
    Unknown(String),
    #[error("tensor `{name}` has shape {found:?} where the model has {expected:?}")]
    Shape {
        name: String,
        found: Vec<usize>,
        expected: Vec<usize>,
    },
    #[error("the model has at least {expected} {what}, but there are only {found}")]
    TooFew {
        what: &'static str,
        found: usize,
        expected: usize,
    },
    #[error("{0}")]
    Candle(String),
}

impl Weights {
    pub fn iter(&self) -> impl Iterator<Item = &Weight> {
        self.0.values()
    }

    pub fn get(&self, name: &str) -> Option<&Weight> {
        self.0.get(name)
    }

    /// Those that are trained: all but the frozen ones in a model that was built to train, none in one that was
    /// loaded.
    pub fn params(&self) -> impl Iterator<Item = &Param> {
        self.iter().filter_map(Weight::param)
    }

    /// The number of values in all weights together.
    pub fn count(&self) -> usize {
        self.iter()
            .map(|weight| weight.dims().iter().product::<usize>())
            .sum()
    }

    /// Sets every parameter. Nothing changes unless names and shapes fit exactly.
    pub fn load(&self, tensors: &HashMap<String, Tensor>) -> std::result::Result<(), LoadError> {
        let shape = |tensor: &Tensor| tensor.dims().to_vec();
        let found = tensors
            .iter()
            .map(|(name, tensor)| (name.clone(), shape(tensor)));
        let expected = self.0.iter();
        let expected = expected.map(|(name, weight)| (name.clone(), shape(weight.value())));
        LoadError::check(&found.collect(), &expected.collect())?;
        for param in self.params() {
            let result = param.set(&tensors[param.name()]);
            result.map_err(|error| LoadError::Candle(error.to_string()))?;
        }
        Ok(())
    }
}

impl Packing {
    /// Packs a matrix.
    fn pack(self, tensor: &Tensor) -> Result<PackedWeight> {
        match self {
            Packing::Float => PackedWeight::float(tensor),
            Packing::Int8 => PackedWeight::quantized(tensor),
        }
    }
}

impl LoadError {
    /// Compares the shapes of tensors with those of a model's weights.
    pub fn check(
        found: &BTreeMap<String, Vec<usize>>,
        expected: &BTreeMap<String, Vec<usize>>,
    ) -> std::result::Result<(), LoadError> {
        if let Some(name) = found.keys().find(|name| !expected.contains_key(*name)) {
            return Err(LoadError::Unknown(name.clone()));
        }
        for (name, expected) in expected {
            match found.get(name) {
                None => return Err(LoadError::Missing(name.clone())),
                Some(found) if found != expected => {
                    return Err(LoadError::Shape {
                        name: name.clone(),
                        found: found.clone(),
                        expected: expected.clone(),
                    });
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

/// Where the values of a model's weights come from.
pub(crate) enum Values<'a> {
    /// Random initial values, a function of (seed, name) alone.
    Seed(u64),
    /// Tensors by name. They are trained, except for those that are frozen.
    Given {
        load: &'a mut dyn FnMut(&str) -> Result<Tensor>,
        frozen: &'a dyn Fn(&str) -> bool,
    },
    /// Tensors by name. They are not trained.
    Loaded(&'a mut dyn FnMut(&str) -> Result<Tensor>),
    /// Tensors or packed matrices by name. They are not trained, and matrices are held as `packing` says.
    Packed {
        load: &'a mut dyn FnMut(&str) -> Result<Loaded>,
        packing: Packing,
    },
    /// Nothing but shapes: no memory is taken for values.
    Shapes,
}

/// How the matrices of a model are held that was loaded to translate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Packing {
    /// 32-bit floats.
    #[default]
    Float,
    /// 8-bit integers with a scale for each row.
    Int8,
}

/// What was loaded under the name of a weight.
pub enum Loaded {
    Tensor(Tensor),
    /// A matrix that is in its packed order already.
    Matrix(PackedWeight),
}

/// Makes the weights of a model, by name.
pub(crate) struct Init<'a> {
    values: Values<'a>,
    pub(crate) device: &'a Device,
    weights: BTreeMap<String, Weight>,
}

impl<'a> Init<'a> {
    pub(crate) fn new(values: Values<'a>, device: &'a Device) -> Self {
        Self {
            values,
            device,
            weights: BTreeMap::new(),
        }
    }

    pub(crate) fn finish(self) -> Weights {
        Weights(self.weights)
    }

    /// The parameters so far of a part of the model, whose names begin with the part's.
    pub(crate) fn params_of(&self, part: &str) -> Vec<Param> {
        let prefix = format!("{part}.");
        let weights = self.weights.values();
        let params = weights.filter_map(|weight| weight.param().cloned());
        params
            .filter(|param| param.name().starts_with(&prefix))
            .collect()
    }

    fn add(
        &mut self,
        name: String,
        shape: impl Into<Shape>,
        initial: impl Fn(u64) -> f64,
    ) -> Result<Weight> {
        let shape = shape.into();
        let trained = |name: &str, value| Ok(Param::new(name, &value)?.into());
        let weight = match &mut self.values {
            Values::Seed(_) => trained(&name, random::tensor(shape, self.device, initial)?),
            Values::Given { load, frozen } if !frozen(&name) => trained(&name, load(&name)?),
            _ => self.read_only(&name, shape),
        };
        Ok(self.keep(weight?))
    }

    /// A weight that is loaded and not trained, or that is nothing but a shape.
    fn read_only(&mut self, name: &str, shape: Shape) -> Result<Weight> {
        let value = match &mut self.values {
            Values::Loaded(load) | Values::Given { load, .. } => load(name)?,
            Values::Packed { load, .. } => match load(name)? {
                Loaded::Tensor(tensor) => tensor,
                Loaded::Matrix(_) => {
                    bail!("`{name}` is a packed matrix, but the model does not read it as one")
                }
            },
            _ => Tensor::zeros(1, DType::F32, self.device)?.broadcast_as(shape)?,
        };
        Ok(Weight::read_only(name, value))
    }

    /// A matrix or a table: a weight that only products and look-ups of rows read, so that it can be packed.
    fn add_matrix(
        &mut self,
        name: String,
        shape: (usize, usize),
        initial: impl Fn(u64) -> f64,
    ) -> Result<Weight> {
        let Values::Packed { load, packing } = &mut self.values else {
            return self.add(name, shape, initial);
        };
        let matrix = match load(&name)? {
            Loaded::Matrix(matrix) => matrix,
            Loaded::Tensor(tensor) => packing.pack(&tensor)?,
        };
        Ok(self.keep(Weight::packed(&name, matrix)))
    }

    fn keep(&mut self, weight: Weight) -> Weight {
        let name = weight.name().to_string();
        let taken = self.weights.insert(name, weight.clone());
        assert!(taken.is_none(), "two weights named {}", weight.name());
        weight
    }

    fn key(&self, name: &str) -> Key {
        let seed = match self.values {
            Values::Seed(seed) => seed,
            _ => 0, // not used
        };
        Key::new(seed, 0, Site::named(name))
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
        let name = format!("{name}.weight");
        let initial = self.uniform(&name, inputs + outputs);
        let weight = self.add_matrix(name, (outputs, inputs), initial)?;
        Ok(Linear { weight, bias: None })
    }

    /// A bias of zero.
    pub(crate) fn bias(&mut self, name: &str, width: usize) -> Result<Weight> {
        self.add(name.to_string(), width, |_| 0.0)
    }

    /// What a hidden layer of `width` is multiplied with to make one number.
    pub(crate) fn vector(&mut self, name: &str, width: usize) -> Result<Weight> {
        let initial = self.uniform(name, width + 1);
        self.add(name.to_string(), width, initial)
    }

    pub(crate) fn scalar(&mut self, name: &str, value: f64) -> Result<Weight> {
        self.add(name.to_string(), 1, |_| value)
    }

    /// A number that is not trained by gradient descent (see [`Param::follower`]).
    pub(crate) fn follower(&mut self, name: &str) -> Result<Weight> {
        let weight = match &mut self.values {
            Values::Seed(_) => {
                let zero = Tensor::zeros(1, DType::F32, self.device)?;
                Param::follower(name, &zero)?.into()
            }
            Values::Given { load, frozen } if !frozen(name) => {
                Param::follower(name, &load(name)?)?.into()
            }
            _ => self.read_only(name, 1.into())?,
        };
        Ok(self.keep(weight))
    }

    /// Initial values of a matrix or vector.
    fn uniform(&self, name: &str, inputs_and_outputs: usize) -> impl Fn(u64) -> f64 + use<> {
        let (key, bound) = (self.key(name), (6.0 / inputs_and_outputs as f64).sqrt());
        move |i| bound * (2.0 * key.uniform(i) - 1.0)
    }

    /// A convolution of size 3 × 3, `[outputs, 3, 3, inputs]`, by He et al.'s rule for what ReLU follows (2015), and a
    /// bias of zero.
    pub(crate) fn convolution(
        &mut self,
        name: &str,
        inputs: usize,
        outputs: usize,
    ) -> Result<(Weight, Weight)> {
        let weight = format!("{name}.weight");
        let (key, deviation) = (self.key(&weight), (2.0 / (9 * inputs) as f64).sqrt());
        let initial = move |i| deviation * key.normal(i);
        let weight = self.add(weight, (outputs, 3, 3, inputs), initial)?;
        Ok((weight, self.bias(&format!("{name}.bias"), outputs)?))
    }

    pub(crate) fn norm(&mut self, name: &str, d: usize) -> Result<LayerNorm> {
        let weight = self.add(format!("{name}.weight"), d, |_| 1.0)?;
        let bias = self.add(format!("{name}.bias"), d, |_| 0.0)?;
        Ok(LayerNorm { weight, bias })
    }

    /// Embeddings `[v, d]`, normal with variance 1/d, so that times √d they have variance one. The
    /// last row, padding, is zero.
    pub(crate) fn table(&mut self, name: &str, v: usize, d: usize) -> Result<Weight> {
        let (key, padding) = (self.key(name), ((v - 1) * d) as u64);
        let deviation = 1.0 / (d as f64).sqrt();
        self.add_matrix(name.to_string(), (v, d), |i| {
            if i < padding {
                deviation * key.normal(i)
            } else {
                0.0
            }
        })
    }
}
