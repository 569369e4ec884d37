use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::fault::shown;
use crate::file::is_plain;
use crate::{Error, Result};

/// `model.safetensors.index.json` or `pytorch_model.bin.index.json`: which shard has which tensor.
#[derive(Debug, Deserialize)]
pub struct WeightsIndex {
    /// The name of the shard, by the name of the tensor.
    #[serde(rename = "weight_map")]
    pub shards: BTreeMap<String, String>,
}

impl WeightsIndex {
    /// Parses the bytes of the file. Every shard in it is a file in the same folder. `path` is for errors.
    pub fn parse(json: &[u8], path: &Path) -> Result<Self> {
        let damaged = |message: String| Error::Damaged {
            path: path.into(),
            message,
        };
        let index: Self = serde_json::from_slice(json)
            .map_err(|error| damaged(format!("not an index of weights: {error}")))?;
        match index.shards.iter().find(|(_, shard)| !is_plain(shard)) {
            None => Ok(index),
            Some((tensor, shard)) => Err(damaged(format!(
                "tensor `{}` is in {:?}, which is not the name of a file in this folder",
                shown(tensor),
                shown(shard)
            ))),
        }
    }
}
