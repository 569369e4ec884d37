use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};

use super::fault::shown;
use super::index::WeightsIndex;
use super::{TensorSource, open_file};
use crate::file::read_regular;
use crate::{Error, Result};

/// The most shards of an index. All of them are open at once.
const MOST_SHARDS: usize = 512;

/// Several files of weights. It has the tensors that their index lists, and no others.
pub(super) struct Sharded {
    index: PathBuf,
    shards: BTreeMap<String, Box<dyn TensorSource>>,
    /// The shard and the shape of each tensor.
    tensors: BTreeMap<String, (String, Vec<usize>)>,
}

impl Sharded {
    /// Opens every shard of an index.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let json = read_regular(path).map_err(|source| Error::read(path, source))?;
        let index = WeightsIndex::parse(&json, path)?;
        let damaged = |message: String| Error::Damaged {
            path: path.into(),
            message,
        };
        let mut shards: BTreeMap<String, Box<dyn TensorSource>> = BTreeMap::new();
        let mut found: BTreeMap<String, (String, Vec<usize>)> = BTreeMap::new();
        for shard in index.shards.values() {
            if shards.contains_key(shard) {
                continue;
            }
            if shards.len() == MOST_SHARDS {
                return Err(damaged(format!("more than {MOST_SHARDS} shards")));
            }
            let source = open_file(&path.with_file_name(shard))?;
            for (tensor, shape) in source.shapes() {
                let before = found.insert(tensor.clone(), (shard.clone(), shape));
                if let Some((other, _)) = before {
                    return Err(damaged(format!(
                        "tensor `{}` is in both {} and {}",
                        shown(&tensor),
                        shown(&other),
                        shown(shard)
                    )));
                }
            }
            shards.insert(shard.clone(), source);
        }
        let mut tensors = BTreeMap::new();
        for (tensor, shard) in index.shards {
            match found.remove(&tensor) {
                Some((holder, shape)) if holder == shard => tensors.insert(tensor, (shard, shape)),
                _ => {
                    let (shard, tensor) = (shown(&shard), shown(&tensor));
                    return Err(damaged(format!("{shard} has no tensor `{tensor}`")));
                }
            };
        }
        Ok(Self {
            index: path.into(),
            shards,
            tensors,
        })
    }
}

impl TensorSource for Sharded {
    fn shapes(&self) -> BTreeMap<String, Vec<usize>> {
        let tensors = self.tensors.iter();
        tensors
            .map(|(name, (_, shape))| (name.clone(), shape.clone()))
            .collect()
    }

    fn read(&mut self, name: &str, device: &Device) -> candle_core::Result<Tensor> {
        let shard = self.tensors.get(name).map(|(shard, _)| shard);
        match shard.and_then(|shard| self.shards.get_mut(shard)) {
            Some(source) => source.read(name, device),
            None => candle_core::bail!("{}: no tensor `{name}`", self.index.display()),
        }
    }
}
