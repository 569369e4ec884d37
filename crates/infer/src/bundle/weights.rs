use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use candle_core::{DType, Device, Tensor};

use crate::{Error, Result};

/// How a pickle begins: bare (protocol 2 and up), or in the zip archive of `torch.save`.
const PICKLES: [&[u8]; 2] = [b"\x80", b"PK\x03\x04"];

/// The tensors of a safetensors file, as 32-bit floats.
pub(super) fn read(path: &Path, device: &Device) -> Result<HashMap<String, Tensor>> {
    let damaged = |message: String| Error::Damaged {
        path: path.into(),
        message,
    };
    let bytes = fs::read(path).map_err(|source| Error::read(path, source))?;
    // A safetensors file begins with the length of its header, which is never so long as to look
    // like a zip; with a header of 128 bytes it does begin like a bare pickle.
    let tensors = match candle_core::safetensors::load_buffer(&bytes, device) {
        Ok(tensors) => tensors,
        Err(_) if PICKLES.iter().any(|magic| bytes.starts_with(magic)) => {
            return Err(Error::Pickle(path.into()));
        }
        Err(error) => return Err(damaged(format!("damaged: {error}"))),
    };
    let widen = |(name, tensor): (String, Tensor)| match tensor.dtype() {
        DType::F32 | DType::F16 | DType::BF16 => Ok((name, tensor.to_dtype(DType::F32)?)),
        other => Err(damaged(format!("tensor `{name}` is of type {other:?}"))),
    };
    tensors.into_iter().map(widen).collect()
}

/// A safetensors file: 32-bit floats, sorted by name. The same tensors always give the same bytes.
pub(super) fn to_bytes(tensors: &BTreeMap<String, Tensor>) -> Result<Vec<u8>> {
    let on_cpu = tensors.iter().map(|(name, tensor)| {
        let tensor = tensor.to_device(&Device::Cpu)?.to_dtype(DType::F32)?;
        Ok((name, tensor.contiguous()?))
    });
    let on_cpu = on_cpu.collect::<candle_core::Result<Vec<_>>>()?;
    let metadata = HashMap::from([("format".to_string(), "pt".to_string())]);
    let bytes = safetensors::serialize(on_cpu, Some(metadata));
    Ok(bytes.map_err(candle_core::Error::from)?)
}
