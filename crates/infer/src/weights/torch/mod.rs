//! Files of `torch.save`, such as `pytorch_model.bin`, in both formats.

mod archive;
mod fields;
mod legacy;
mod pickle;
mod state_dict;
mod view;
mod zip;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};

use super::TensorSource;
use super::fault::Fault;
use super::floats::read_floats;
use crate::file::open_regular;
use crate::{Error, Result};
use view::View;

/// The state dict in a file of `torch.save`. Its tensors are read one at a time. Its pickle is never run: it is
/// read as values, and refused if it has anything but tensors.
pub struct TorchFile<R = File> {
    file: R,
    path: PathBuf,
    tensors: BTreeMap<String, View>,
}

impl TorchFile {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = open_regular(path).map_err(|source| Error::read(path, source))?;
        Self::new(file, path)
    }
}

impl<R: Read + Seek> TorchFile<R> {
    /// Reads what tensors there are, and checks that the file has all their numbers. `path` is for errors.
    pub fn new(mut file: R, path: &Path) -> Result<Self> {
        let tensors = tensors(&mut file).map_err(|fault| fault.at(path))?;
        Ok(Self {
            file,
            path: path.into(),
            tensors,
        })
    }
}

fn tensors(file: &mut (impl Read + Seek)) -> std::result::Result<BTreeMap<String, View>, Fault> {
    let length = file.seek(SeekFrom::End(0))?;
    file.rewind()?;
    let mut begin = Vec::new();
    (&mut *file).take(4).read_to_end(&mut begin)?;
    match &begin[..] {
        b"PK\x03\x04" => archive::tensors(file, length),
        [0x80, ..] => legacy::tensors(file, length),
        [] => Fault::damaged("it is empty"),
        _ => Fault::refused("neither a zip archive nor a pickle, as `torch.save` writes"),
    }
}

impl<R: Read + Seek + Send> TensorSource for TorchFile<R> {
    fn shapes(&self) -> BTreeMap<String, Vec<usize>> {
        let tensors = self.tensors.iter();
        tensors
            .map(|(name, view)| (name.clone(), view.shape.clone()))
            .collect()
    }

    fn read(&mut self, name: &str, device: &Device) -> candle_core::Result<Tensor> {
        let path = self.path.display();
        let Some(view) = self.tensors.get(name) else {
            candle_core::bail!("{path}: no tensor `{name}`")
        };
        self.file.seek(SeekFrom::Start(view.start))?;
        let bytes = (&mut self.file).take(view.bytes());
        let Some(span) = read_floats(bytes, view.dtype) else {
            candle_core::bail!("{path}: tensor `{name}` is of type {:?}", view.dtype)
        };
        Tensor::from_vec(view.gather(span?), &view.shape[..], device)
    }
}
