use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo, TensorView};

use super::TensorSource;
use super::floats::read_floats;
use crate::file::open_regular;
use crate::{Error, Result};

/// How a pickle begins: bare (protocol 2 and up), or in the zip archive of `torch.save`.
const PICKLES: [&[u8]; 2] = [b"\x80", b"PK\x03\x04"];
/// The longest header that is read, as in the `safetensors` crate.
const MAX_HEADER: u64 = 100_000_000;

/// A safetensors file. Its tensors are read one at a time, so that the file is never held beside them.
pub struct WeightsFile<R = File> {
    file: R,
    path: PathBuf,
    header: Metadata,
    /// Where the data begins.
    start: u64,
}

impl WeightsFile {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = open_regular(path).map_err(|source| Error::read(path, source))?;
        Self::new(file, path)
    }
}

impl<R: Read + Seek> WeightsFile<R> {
    /// Reads the header, and checks that the file is as long as it says. `path` is for errors.
    pub fn new(mut file: R, path: &Path) -> Result<Self> {
        let failed = |source| Error::read(path, source);
        let damaged = |message: String| Error::Damaged {
            path: path.into(),
            message: format!("damaged: {message}"),
        };
        let length = file.seek(SeekFrom::End(0)).map_err(failed)?;
        file.rewind().map_err(failed)?;
        let mut begin = Vec::new();
        (&mut file)
            .take(8)
            .read_to_end(&mut begin)
            .map_err(failed)?;
        let header_length = match begin[..].try_into() {
            Ok(bytes) => u64::from_le_bytes(bytes),
            Err(_) => return Err(damaged("it has no header".into())),
        };
        let start = header_length.saturating_add(8);
        if header_length > MAX_HEADER || start > length {
            // A header is never so long that its length looks like the beginning of a zip archive.
            let pickle = PICKLES.iter().any(|magic| begin.starts_with(magic));
            return Err(if pickle {
                Error::Pickle(path.into())
            } else {
                damaged("its header is longer than the file".into())
            });
        }
        let mut header = Vec::new();
        let read = (&mut file).take(header_length).read_to_end(&mut header);
        read.map_err(failed)?;
        let header: Metadata =
            serde_json::from_slice(&header).map_err(|error| damaged(error.to_string()))?;
        let expected = start + header.data_len() as u64;
        if expected != length {
            return Err(damaged(format!(
                "{length} bytes where its header says {expected}"
            )));
        }
        Ok(Self {
            file,
            path: path.into(),
            header,
            start,
        })
    }

    /// What the header says of a tensor.
    pub(super) fn info(&self, name: &str) -> Option<&TensorInfo> {
        self.header.info(name)
    }

    /// Where the data begins in the file.
    pub(super) fn data_start(&self) -> usize {
        self.start as usize
    }

    /// Requires that every tensor is of 16- or 32-bit floats, as in a bundle.
    pub fn require_floats(&self) -> Result<()> {
        for (name, info) in self.header.tensors() {
            if !matches!(info.dtype, Dtype::F32 | Dtype::F16 | Dtype::BF16) {
                return Err(Error::Damaged {
                    path: self.path.clone(),
                    message: format!("tensor `{name}` is of type {:?}", info.dtype),
                });
            }
        }
        Ok(())
    }
}

impl<R: Read + Seek + Send> TensorSource for WeightsFile<R> {
    fn shapes(&self) -> BTreeMap<String, Vec<usize>> {
        let tensors = self.header.tensors().into_iter();
        tensors
            .map(|(name, info)| (name, info.shape.clone()))
            .collect()
    }

    fn read(&mut self, name: &str, device: &Device) -> candle_core::Result<Tensor> {
        let path = self.path.display();
        let Some(info) = self.header.info(name) else {
            candle_core::bail!("{path}: no tensor `{name}`")
        };
        let (begin, end) = info.data_offsets;
        self.file.seek(SeekFrom::Start(self.start + begin as u64))?;
        let bytes = (&mut self.file).take((end - begin) as u64);
        let Some(values) = read_floats(bytes, info.dtype) else {
            candle_core::bail!("{path}: tensor `{name}` is of type {:?}", info.dtype)
        };
        Tensor::from_vec(values?, &info.shape[..], device)
    }
}

/// The tensors of a safetensors file whose bytes were read, as 32-bit floats. `path` is for errors.
pub fn parse_tensors(
    bytes: &[u8],
    path: &Path,
    device: &Device,
) -> Result<HashMap<String, Tensor>> {
    let damaged = |message: String| Error::Damaged {
        path: path.into(),
        message,
    };
    let tensors = candle_core::safetensors::load_buffer(bytes, device);
    let tensors = tensors.map_err(|error| damaged(format!("damaged: {error}")))?;
    let widen = |(name, tensor): (String, Tensor)| match tensor.dtype() {
        DType::F32 | DType::F16 | DType::BF16 => Ok((name, tensor.to_dtype(DType::F32)?)),
        other => Err(damaged(format!("tensor `{name}` is of type {other:?}"))),
    };
    tensors.into_iter().map(widen).collect()
}

/// A safetensors file: 32-bit floats, sorted by name. The same tensors always give the same bytes.
pub(crate) fn to_bytes(tensors: &BTreeMap<String, Tensor>) -> Result<Vec<u8>> {
    let on_cpu = tensors.iter().map(|(name, tensor)| {
        let tensor = tensor.to_device(&Device::Cpu)?.to_dtype(DType::F32)?;
        Ok((name, tensor.contiguous()?))
    });
    let on_cpu = on_cpu.collect::<candle_core::Result<Vec<_>>>()?;
    let metadata = HashMap::from([("format".to_string(), "pt".to_string())]);
    let bytes = safetensors::serialize(on_cpu, Some(metadata));
    Ok(bytes.map_err(candle_core::Error::from)?)
}

/// Matrices begin at a multiple of this where they can, so that no load of a vector crosses two lines of the cache.
const ALIGNMENT: usize = 64;

/// A safetensors file of tensors with these names, types, shapes and bytes. Floats come before integers, which are
/// aligned: the header is filled up by an entry of its metadata.
pub(super) fn aligned_bytes(tensors: Vec<(String, Dtype, Vec<usize>, Vec<u8>)>) -> Result<Vec<u8>> {
    let views = tensors.iter().map(|(name, dtype, shape, bytes)| {
        let view = TensorView::new(*dtype, shape.clone(), bytes)?;
        Ok((name, view))
    });
    let views = views.collect::<std::result::Result<Vec<_>, safetensors::SafeTensorError>>();
    let views = views.map_err(candle_core::Error::from)?;
    let file = |fill: usize| {
        let fill = ("fill".to_string(), " ".repeat(fill));
        let metadata = HashMap::from([fill]);
        safetensors::serialize(views.clone(), Some(metadata)).map_err(candle_core::Error::from)
    };
    let bytes = file(0)?;
    let header = bytes
        .first_chunk()
        .map_or(0, |size| u64::from_le_bytes(*size)) as usize;
    let floats = tensors.iter().filter(|(_, dtype, ..)| *dtype == Dtype::F32);
    let floats: usize = floats.map(|(.., bytes)| bytes.len()).sum();
    match (header + 8 + floats) % ALIGNMENT {
        0 => Ok(bytes),
        over => Ok(file(ALIGNMENT - over)?),
    }
}
