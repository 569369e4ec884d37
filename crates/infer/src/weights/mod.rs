//! Reads the weights of a folder as Hugging Face saves it, whatever their file.
//!
//! | file | contents |
//! |---|---|
//! | `safetensors` | a safetensors file, and writing one |
//! | `quantized` | a safetensors file whose matrices are in 8 bits, and writing one |
//! | `torch/` | a file of `torch.save`: a zip archive, or the older stream of pickles |
//! | `torch/pickle/` | a pickle, of which no code is ever run |
//! | `index`, `sharded` | several files with an index |
//! | `floats` | numbers of any type as 32-bit floats |
//! | `fault` | what can be wrong with a file |

mod fault;
mod floats;
mod index;
mod quantized;
pub(crate) mod safetensors;
mod sharded;
mod torch;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use attend_ops::Int8Matrix;
use candle_core::{Device, Tensor};

pub use index::WeightsIndex;
pub use safetensors::{WeightsFile, parse_tensors};
pub use torch::TorchFile;

use crate::file::open_regular;
use crate::{Error, Result};
pub(crate) use floats::read_floats;
pub(crate) use quantized::{QuantizedFile, quantized_bytes};
use sharded::Sharded;

/// The files that can hold the weights of a folder. The first that exists is read.
pub(crate) const NAMES: [&str; 4] = [
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
];

/// Named tensors in one file or several. They are read one at a time, so that no file is held beside them.
pub trait TensorSource: Send {
    /// The shape of every tensor, by name. It may have tensors of integers, which cannot be read.
    fn shapes(&self) -> BTreeMap<String, Vec<usize>>;

    /// Reads a tensor of 16-, 32- or 64-bit floats, as 32-bit floats.
    fn read(&mut self, name: &str, device: &Device) -> candle_core::Result<Tensor>;

    /// A matrix that is stored in 8 bits, as it lies; `None` if it is not.
    fn matrix(&mut self, _name: &str) -> candle_core::Result<Option<Int8Matrix>> {
        Ok(None)
    }
}

/// Tensors in memory, by name.
impl TensorSource for BTreeMap<String, Tensor> {
    fn shapes(&self) -> BTreeMap<String, Vec<usize>> {
        let tensors = self.iter();
        tensors
            .map(|(name, tensor)| (name.clone(), tensor.dims().to_vec()))
            .collect()
    }

    fn read(&mut self, name: &str, device: &Device) -> candle_core::Result<Tensor> {
        match self.get(name) {
            Some(tensor) => tensor.to_device(device),
            None => candle_core::bail!("no tensor `{name}`"),
        }
    }
}

/// The weights of a folder: `model.safetensors`, else `pytorch_model.bin`, each of them whole or in shards with
/// an index.
pub fn open_weights(folder: &Path) -> Result<Box<dyn TensorSource>> {
    if !folder.is_dir() {
        return Err(Error::NoFolder(folder.into()));
    }
    // A dangling link counts, so that the error names it.
    let exists = |name: &&str| folder.join(name).symlink_metadata().is_ok();
    let Some(name) = NAMES.into_iter().find(exists) else {
        return Err(Error::NoWeights(folder.into()));
    };
    let path = folder.join(name);
    if name.ends_with(".index.json") {
        Ok(Box::new(Sharded::open(&path)?))
    } else {
        open_file(&path)
    }
}

/// How the text file begins that Git keeps in place of a large one.
const LFS_POINTER: &[u8] = b"version https://git-lfs.";

/// One file of weights, of the kind that its name says.
fn open_file(path: &Path) -> Result<Box<dyn TensorSource>> {
    let failed = |source| Error::read(path, source);
    let file = open_regular(path).map_err(failed)?;
    let mut begin = Vec::new();
    let read = file.take(LFS_POINTER.len() as u64).read_to_end(&mut begin);
    read.map_err(failed)?;
    if begin == LFS_POINTER {
        return Err(Error::LfsPointer(path.into()));
    }
    Ok(match path.extension() {
        Some(extension) if extension == "safetensors" => Box::new(WeightsFile::open(path)?),
        _ => Box::new(TorchFile::open(path)?),
    })
}
