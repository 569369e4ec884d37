//! What translating needs and nothing else: a model, its weights and its tokenizers, in a folder.

mod config;
mod folder;
mod manifest;

use std::collections::BTreeMap;
use std::path::Path;

use attend_data::{Tokenizer, Tokenizers};
use attend_model::{Seq2Seq, Vocabularies};
use candle_core::{Device, Tensor};

pub use config::{BundleConfig, GenerationConfig};
pub(crate) use config::{FORMAT, json, parse, read};
pub use manifest::{Entry, Manifest, sha256};

use crate::weights::{TensorSource, WeightsFile, safetensors};
use crate::{DecodeConfig, Error, Result};

const CONFIG: &str = "config.json";
const GENERATION_CONFIG: &str = "generation_config.json";

/// A model ready to translate.
pub struct Bundle {
    pub config: BundleConfig,
    pub tokenizers: Tokenizers,
    pub model: Box<dyn Seq2Seq>,
    pub decode: DecodeConfig,
}

impl Bundle {
    pub(crate) const WEIGHTS: &str = "model.safetensors";

    /// A run folder (its `best`, else its `last` checkpoint), a checkpoint or a bundle folder.
    pub fn open(folder: &Path, device: &Device) -> Result<Self> {
        let folder = folder::resolve(folder)?;
        folder::verify(&folder)?;
        let config = BundleConfig::read(&folder.join(CONFIG))?;
        let decode = GenerationConfig::read(&folder.join(GENERATION_CONFIG))?;
        let tokenizers = Tokenizers::load(&folder)?;
        config.check_tokenizers(&tokenizers, &folder)?;

        let path = folder.join(Self::WEIGHTS);
        let mut file = WeightsFile::open(&path)?;
        file.require_floats()?;
        // Before anything is allocated: what the config asks for may be larger than the file.
        let fits = config
            .model
            .check_weights(config.vocabularies, &file.shapes());
        fits.map_err(|source| Error::Weights { path, source })?;
        let mut load = |name: &str| file.read(name, device);
        let model = config.model.load(config.vocabularies, device, &mut load)?;
        tracing::debug!(folder = %folder.display(), weights = model.weights().count(), "opened");
        Ok(Self {
            config,
            tokenizers,
            model,
            decode,
        })
    }

    /// The files of a bundle as (name, bytes), for a caller that writes them safely.
    pub fn files(
        config: &BundleConfig,
        tokenizers: &Tokenizers,
        decode: &DecodeConfig,
        tensors: &BTreeMap<String, Tensor>,
    ) -> Result<Vec<(String, Vec<u8>)>> {
        let generation = GenerationConfig::new(decode, tokenizers.target());
        let mut files = vec![
            (CONFIG.to_string(), config::json(config)),
            (GENERATION_CONFIG.to_string(), config::json(&generation)),
            (Self::WEIGHTS.to_string(), safetensors::to_bytes(tensors)?),
        ];
        let named = tokenizers.files().into_iter();
        files.extend(named.map(|(name, bytes)| (name.to_string(), bytes)));
        Ok(files)
    }
}

/// The vocabularies that a model with these tokenizers needs.
pub fn vocabularies(tokenizers: &Tokenizers) -> Vocabularies {
    Vocabularies {
        source: tokenizers.source().map(Tokenizer::vocab_size),
        target: tokenizers.target().vocab_size(),
        joint: tokenizers.is_joint(),
    }
}
