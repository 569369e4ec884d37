use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};
use safetensors::Dtype;

use super::{BINARY_VERSION, Kind, SPEC, names};
use crate::file::open_regular;
use crate::weights::read_floats;
use crate::{Error, Result};

/// The most variables that are read, and the most aliases. Large models have thousands.
const MOST: u32 = 1_000_000;

/// A `model.bin`. Its variables are read one at a time, so that the file is never held beside them.
pub struct ModelFile<R = File> {
    file: BufReader<R>,
    path: PathBuf,
    variables: BTreeMap<String, Stored>,
    /// Other names of variables.
    aliases: BTreeMap<String, String>,
}

/// A variable, and where its data is.
struct Stored {
    kind: Kind,
    shape: Vec<usize>,
    start: u64,
    bytes: u64,
}

impl ModelFile {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = open_regular(path).map_err(|source| Error::read(path, source))?;
        Self::new(file, path)
    }
}

impl<R: Read + Seek> ModelFile<R> {
    /// Reads names, types and shapes, and checks that the file is as long as they say. `path` is for errors.
    pub fn new(mut file: R, path: &Path) -> Result<Self> {
        let failed = |source| Error::read(path, source);
        let length = file.seek(SeekFrom::End(0)).map_err(failed)?;
        file.rewind().map_err(failed)?;
        let mut scan = Scan {
            file: BufReader::new(file),
            path,
            at: 0,
            length,
        };
        scan.check_versions()?;
        let variables = scan.variables()?;
        let aliases = scan.aliases(&variables)?;
        if scan.at != length {
            let rest = length - scan.at;
            return Err(scan.damaged(format!("{rest} bytes after its end")));
        }
        Ok(Self {
            file: scan.file,
            path: path.into(),
            variables,
            aliases,
        })
    }

    /// The names of all variables, and of their aliases.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.variables.keys().chain(self.aliases.keys());
        names.map(String::as_str)
    }

    /// The name that a variable is stored under, if there is one of this name.
    pub(super) fn stored_name<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        let name = self.aliases.get(name).map_or(name, String::as_str);
        self.variables.contains_key(name).then_some(name)
    }

    fn stored(&self, name: &str) -> Option<&Stored> {
        self.variables.get(self.stored_name(name)?)
    }

    /// The shape of a variable, if there is one of this name.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.stored(name).map(|stored| &stored.shape[..])
    }

    /// Reads a variable of floating-point numbers, as 32-bit floats.
    pub fn read(&mut self, name: &str, device: &Device) -> Result<Tensor> {
        let Some(Stored { kind, shape, .. }) = self.stored(name) else {
            return Err(self.unsupported(format!("no variable `{name}`")));
        };
        let (kind, shape) = (*kind, shape.clone());
        if let (Kind::I8, [_, _]) = (kind, &shape[..]) {
            return self.quantized(name, shape, device);
        }
        let dtype = match kind {
            Kind::F32 => Dtype::F32,
            Kind::F16 => Dtype::F16,
            Kind::Bf16 => Dtype::BF16,
            Kind::I8 | Kind::I16 | Kind::I32 => {
                return Err(self.unsupported(format!("`{name}` is quantised")));
            }
        };
        let Some(values) = read_floats(self.data(name)?, dtype) else {
            return Err(self.unsupported(format!("`{name}` is of type {dtype:?}")));
        };
        let values = values.map_err(|source| Error::read(&self.path, source))?;
        Ok(Tensor::from_vec(values, shape, device)?)
    }

    /// Reads a matrix of 8-bit integers, which has a scale for each row.
    fn quantized(&mut self, name: &str, shape: Vec<usize>, device: &Device) -> Result<Tensor> {
        let scales = names::scales(self.stored_name(name).unwrap_or(name));
        if self.shape(&scales) != Some(&shape[..1]) {
            return Err(self.unsupported(format!(
                "`{name}` is quantised and has no scale for each row"
            )));
        }
        let scales = self.read(&scales, &Device::Cpu)?.to_vec1::<f32>()?;
        let mut bytes = Vec::new();
        let read = self.data(name)?.read_to_end(&mut bytes);
        read.map_err(|source| Error::read(&self.path, source))?;
        let rows = bytes.chunks(shape[1]).zip(scales);
        let values = rows.flat_map(|(row, scale)| {
            let step = 1.0 / scale;
            row.iter().map(move |q| f32::from(q.cast_signed()) * step)
        });
        Ok(Tensor::from_vec(
            values.collect::<Vec<f32>>(),
            shape,
            device,
        )?)
    }

    /// Reads a setting, if there is one of this name.
    pub(super) fn scalar(&mut self, name: &str) -> Result<Option<f64>> {
        let Some(Stored { kind, shape, .. }) = self.stored(name) else {
            return Ok(None);
        };
        let (kind, dims) = (*kind, shape.len());
        if dims != 0 || matches!(kind, Kind::F16 | Kind::Bf16) {
            return Err(self.unsupported(format!("`{name}` is not a number")));
        }
        let mut bytes = [0; 4];
        let read = self.data(name)?.read_exact(&mut bytes[..kind.size()]);
        read.map_err(|source| Error::read(&self.path, source))?;
        let [a, b, ..] = bytes;
        Ok(Some(match kind {
            Kind::I8 => f64::from(i8::from_le_bytes([a])),
            Kind::I16 => f64::from(i16::from_le_bytes([a, b])),
            Kind::I32 => f64::from(i32::from_le_bytes(bytes)),
            _ => f64::from(f32::from_le_bytes(bytes)),
        }))
    }

    /// The bytes of a variable, if there is one of this name, else none.
    fn data(&mut self, name: &str) -> Result<std::io::Take<&mut BufReader<R>>> {
        let place = self.stored(name).map(|stored| (stored.start, stored.bytes));
        let (start, bytes) = place.unwrap_or_default();
        let sought = self.file.seek(SeekFrom::Start(start));
        sought.map_err(|source| Error::read(&self.path, source))?;
        Ok((&mut self.file).take(bytes))
    }

    pub(super) fn unsupported(&self, what: String) -> Error {
        let path = self.path.clone();
        Error::Unsupported { path, what }
    }
}

/// Reads a file from the beginning, and never beyond its end.
struct Scan<'a, R> {
    file: BufReader<R>,
    path: &'a Path,
    at: u64,
    length: u64,
}

impl<R: Read + Seek> Scan<'_, R> {
    fn check_versions(&mut self) -> Result<()> {
        let version = self.u32()?;
        if version != BINARY_VERSION {
            return Err(self.unsupported(format!("binary version {version}, not {BINARY_VERSION}")));
        }
        let (name, revision) = (self.string()?, self.u32()?);
        if (&*name, revision) != SPEC {
            let (ours, our_revision) = SPEC;
            return Err(self.unsupported(format!(
                "{name} of revision {revision}, not {ours} of revision {our_revision}"
            )));
        }
        Ok(())
    }

    fn variables(&mut self) -> Result<BTreeMap<String, Stored>> {
        let mut variables = BTreeMap::new();
        for _ in 0..self.count()? {
            let name = self.string()?;
            let [rank] = self.take()?;
            let shape = (0..rank).map(|_| Ok(self.u32()? as usize));
            let shape = shape.collect::<Result<Vec<usize>>>()?;
            let [code] = self.take()?;
            let Some(kind) = Kind::of(code) else {
                return Err(self.damaged(format!("`{name}` is of the unknown type {code}")));
            };
            let bytes = u64::from(self.u32()?);
            // No tensor is empty, so that no product of some of its dimensions overflows either.
            let size = |size: usize, dim: &usize| size.checked_mul(*dim).filter(|size| *size > 0);
            let expected = shape.iter().try_fold(kind.size(), size);
            if expected.map(|size| size as u64) != Some(bytes) {
                let message = format!("`{name}` of shape {shape:?} has {bytes} bytes");
                return Err(self.damaged(message));
            }
            let start = self.at;
            self.skip(bytes)?;
            let stored = Stored {
                kind,
                shape,
                start,
                bytes,
            };
            if variables.insert(name.clone(), stored).is_some() {
                return Err(self.damaged(format!("`{name}` is there twice")));
            }
        }
        Ok(variables)
    }

    fn aliases(
        &mut self,
        variables: &BTreeMap<String, Stored>,
    ) -> Result<BTreeMap<String, String>> {
        let mut aliases = BTreeMap::new();
        for _ in 0..self.count()? {
            let (alias, name) = (self.string()?, self.string()?);
            if !variables.contains_key(&name) {
                let message = format!("`{alias}` stands for `{name}`, which is missing");
                return Err(self.damaged(message));
            }
            if variables.contains_key(&alias) || aliases.insert(alias.clone(), name).is_some() {
                return Err(self.damaged(format!("`{alias}` is there twice")));
            }
        }
        Ok(aliases)
    }

    fn count(&mut self) -> Result<u32> {
        let count = self.u32()?;
        if count > MOST {
            return Err(self.damaged(format!("{count} variables")));
        }
        Ok(count)
    }

    /// A name: its length, which counts a zero after it, and ASCII characters.
    fn string(&mut self) -> Result<String> {
        let length = usize::from(u16::from_le_bytes(self.take()?));
        self.check_left(length as u64)?;
        let mut bytes = vec![0; length];
        let read = self.file.read_exact(&mut bytes);
        read.map_err(|source| Error::read(self.path, source))?;
        self.at += length as u64;
        let end = bytes.pop();
        match String::from_utf8(bytes) {
            Ok(name) if end == Some(0) && is_name(&name) => Ok(name),
            _ => Err(self.damaged("a name that is not text".into())),
        }
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.check_left(N as u64)?;
        let mut bytes = [0; N];
        let read = self.file.read_exact(&mut bytes);
        read.map_err(|source| Error::read(self.path, source))?;
        self.at += N as u64;
        Ok(bytes)
    }

    fn skip(&mut self, bytes: u64) -> Result<()> {
        self.check_left(bytes)?;
        self.at += bytes;
        let sought = self.file.seek_relative(bytes as i64);
        sought.map_err(|source| Error::read(self.path, source))
    }

    fn check_left(&self, bytes: u64) -> Result<()> {
        if bytes > self.length.saturating_sub(self.at) {
            return Err(self.damaged("it is shorter than it says".into()));
        }
        Ok(())
    }

    fn damaged(&self, message: String) -> Error {
        Error::Damaged {
            path: self.path.into(),
            message: format!("damaged: {message}"),
        }
    }

    fn unsupported(&self, what: String) -> Error {
        let path = self.path.into();
        Error::Unsupported { path, what }
    }
}

/// Whether errors can show it as it is.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic())
}
