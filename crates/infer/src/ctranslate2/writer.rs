use std::io::{self, Write};
use std::path::Path;

use attend_ops::quantize_row;
use candle_core::{DType, Device, Tensor};

use super::scalars::Scalar;
use super::{BINARY_VERSION, Kind, SPEC};
use crate::{Error, Result};

/// Numbers that are converted to bytes at a time.
const CHUNK: usize = 1 << 16;

/// Writes a `model.bin`, variable by variable, so that no weight is held twice.
pub(super) struct Writer<'a, W> {
    out: W,
    /// For errors.
    path: &'a Path,
}

impl<'a, W: Write> Writer<'a, W> {
    /// Begins a file with this many variables.
    pub(super) fn new(out: W, path: &'a Path, variables: usize) -> Result<Self> {
        let mut writer = Self { out, path };
        let (spec, revision) = SPEC;
        writer.bytes(&BINARY_VERSION.to_le_bytes())?;
        writer.string(spec)?;
        writer.bytes(&revision.to_le_bytes())?;
        writer.number(variables)?;
        Ok(writer)
    }

    pub(super) fn scalar(&mut self, name: &str, value: Scalar) -> Result<()> {
        self.begin(name, value.kind(), &[])?;
        match value {
            Scalar::F32(value) => self.bytes(&value.to_le_bytes()),
            Scalar::I8(value) => self.bytes(&value.to_le_bytes()),
            Scalar::I16(value) => self.bytes(&value.to_le_bytes()),
        }
    }

    /// Begins a variable. Its data must follow, row by row.
    pub(super) fn begin(&mut self, name: &str, kind: Kind, shape: &[usize]) -> Result<()> {
        let size = |size: usize, dim: &usize| size.checked_mul(*dim);
        let bytes = shape.iter().try_fold(kind.size(), size);
        let Some(bytes) = bytes.and_then(|bytes| u32::try_from(bytes).ok()) else {
            return Err(Error::Unexportable {
                what: format!("`{name}` of shape {shape:?} has 4 GiB or more"),
                hint: "CTranslate2's files store less than 4 GiB of each: use a smaller vocabulary or model, \
                       or lower decode.max_length and decode.max_source_length"
                    .into(),
            });
        };
        self.string(name)?;
        self.bytes(&[shape.len() as u8])?; // 2 at most
        for dim in shape {
            self.number(*dim)?;
        }
        self.bytes(&[kind.code()])?;
        self.bytes(&bytes.to_le_bytes())
    }

    /// Continues the variable with the first rows of a tensor.
    pub(super) fn rows(&mut self, tensor: &Tensor, rows: usize) -> Result<()> {
        let width: usize = tensor.dims().iter().skip(1).product();
        let step = (CHUNK / width.max(1)).max(1);
        for start in (0..rows).step_by(step) {
            let chunk = tensor.narrow(0, start, step.min(rows - start))?;
            let chunk = chunk.to_device(&Device::Cpu)?.to_dtype(DType::F32)?;
            let values: Vec<f32> = chunk.flatten_all()?.to_vec1()?;
            let bytes: Vec<u8> = values.into_iter().flat_map(f32::to_le_bytes).collect();
            self.bytes(&bytes)?;
        }
        Ok(())
    }

    /// Continues a variable of 8-bit integers with the first rows of a matrix. Returns the scale of each.
    pub(super) fn quantized_rows(&mut self, matrix: &Tensor, rows: usize) -> Result<Vec<f32>> {
        let mut quantized = vec![0; matrix.dim(1)?];
        let scale = |row| {
            let row = matrix.get(row)?.to_device(&Device::Cpu)?;
            let scale = quantize_row(&row.to_dtype(DType::F32)?.to_vec1()?, &mut quantized);
            let bytes: Vec<u8> = quantized.iter().map(|q: &i8| q.cast_unsigned()).collect();
            self.bytes(&bytes)?;
            Ok(scale)
        };
        (0..rows).map(scale).collect()
    }

    /// Ends the file with other names of variables.
    pub(super) fn finish(mut self, aliases: &[(&str, &str)]) -> Result<()> {
        self.number(aliases.len())?;
        for (alias, name) in aliases {
            self.string(alias)?;
            self.string(name)?;
        }
        let flushed = self.out.flush();
        flushed.map_err(|source| self.failed(source))
    }

    /// A name: its length, which counts a zero after it, and ASCII characters.
    fn string(&mut self, name: &str) -> Result<()> {
        let length = u16::try_from(name.len() + 1);
        let length = length.map_err(|_| self.failed(io::Error::other("a name is too long")))?;
        self.bytes(&length.to_le_bytes())?;
        self.bytes(name.as_bytes())?;
        self.bytes(&[0])
    }

    fn number(&mut self, number: usize) -> Result<()> {
        let number = u32::try_from(number);
        let number = number.map_err(|_| self.failed(io::Error::other("a count is too large")))?;
        self.bytes(&number.to_le_bytes())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.out.write_all(bytes);
        written.map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> Error {
        let path = self.path.into();
        Error::Write { path, source }
    }
}
