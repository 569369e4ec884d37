use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use attend_data::Bytes;
use attend_ops::Int8Matrix;
use candle_core::{Device, Tensor};
use safetensors::Dtype;

use super::{TensorSource, WeightsFile};
use crate::{Error, Result};

/// What is added to the name of a matrix for that of its scales.
const SCALES: &str = ".scale";

/// A safetensors file whose matrices are in 8 bits, in the packed order of [`Int8Matrix`]. They are mapped and used
/// as they lie. The scales of a matrix are the tensor `NAME.scale`.
pub(crate) struct QuantizedFile {
    file: WeightsFile,
    bytes: Arc<Bytes>,
    shapes: BTreeMap<String, Vec<usize>>,
}

impl QuantizedFile {
    /// Opens a file for a model whose weights have these shapes.
    pub(crate) fn open(path: &Path, model: &BTreeMap<String, Vec<usize>>) -> Result<Self> {
        let file = WeightsFile::open(path)?;
        let bytes = Bytes::map(path).map_err(|source| Error::read(path, source))?;
        let damaged = |message: String| Error::Damaged {
            path: path.into(),
            message: format!("damaged: {message}"),
        };
        let stored = file.shapes();
        let mut shapes = BTreeMap::new();
        for (name, shape) in &stored {
            let is_int8 = |name: &str| file.info(name).is_some_and(|info| info.dtype == Dtype::I8);
            if name.strip_suffix(SCALES).is_some_and(is_int8) {
                continue;
            }
            let shape = match file.info(name).map(|info| info.dtype) {
                Some(Dtype::I8) => {
                    let scales = stored.get(&format!("{name}{SCALES}"));
                    let Some([outputs, inputs]) = model.get(name).map(Vec::as_slice) else {
                        return Err(damaged(format!("`{name}` is no matrix of the model")));
                    };
                    let size: usize = shape.iter().product();
                    let fits = size == Int8Matrix::size(*outputs, *inputs);
                    if !fits || scales != Some(&vec![*outputs]) {
                        return Err(damaged(format!(
                            "`{name}` is not a matrix of {outputs} by {inputs} with its scales"
                        )));
                    }
                    vec![*outputs, *inputs]
                }
                Some(Dtype::F32) => shape.clone(),
                _ => return Err(damaged(format!("`{name}` is neither in 8 nor in 32 bits"))),
            };
            shapes.insert(name.clone(), shape);
        }
        Ok(Self {
            file,
            bytes: Arc::new(bytes),
            shapes,
        })
    }
}

impl TensorSource for QuantizedFile {
    fn shapes(&self) -> BTreeMap<String, Vec<usize>> {
        self.shapes.clone()
    }

    fn read(&mut self, name: &str, device: &Device) -> candle_core::Result<Tensor> {
        match self.matrix(name)? {
            Some(matrix) => Tensor::from_vec(matrix.dequantize(), &self.shapes[name][..], device),
            None => self.file.read(name, device),
        }
    }

    fn matrix(&mut self, name: &str) -> candle_core::Result<Option<Int8Matrix>> {
        let Some(info) = self.file.info(name).filter(|info| info.dtype == Dtype::I8) else {
            return Ok(None);
        };
        let (begin, end) = info.data_offsets;
        let start = self.file.data_start();
        let scales = self.file.read(&format!("{name}{SCALES}"), &Device::Cpu)?;
        let inputs = self.shapes[name][1];
        let matrix = Int8Matrix::new(
            self.bytes.clone(),
            start + begin..start + end,
            &scales.to_vec1::<f32>()?,
            inputs,
        );
        match matrix {
            Some(matrix) => Ok(Some(matrix)),
            None => {
                candle_core::bail!("`{name}` is cut off, or a scale of it is not a positive number")
            }
        }
    }
}

/// A safetensors file of weights, in which every matrix is in 8 bits.
pub(crate) fn quantized_bytes(tensors: &BTreeMap<String, Tensor>) -> Result<Vec<u8>> {
    let mut stored: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = Vec::new();
    let floats = |values: Vec<f32>| values.into_iter().flat_map(f32::to_le_bytes).collect();
    for (name, tensor) in tensors {
        let values = tensor.flatten_all()?.to_vec1::<f32>()?;
        match tensor.dims() {
            [outputs, inputs] => {
                let (bytes, scales) = Int8Matrix::quantize(&values, *outputs, *inputs);
                if scales.iter().any(|scale| !scale.is_finite()) {
                    return Err(Error::NotANumber);
                }
                stored.push((name.clone(), Dtype::I8, vec![bytes.len()], bytes));
                let name = format!("{name}{SCALES}");
                stored.push((name, Dtype::F32, vec![scales.len()], floats(scales)));
            }
            dims => stored.push((name.clone(), Dtype::F32, dims.to_vec(), floats(values))),
        }
    }
    super::safetensors::aligned_bytes(stored)
}
