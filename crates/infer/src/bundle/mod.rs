//! What translating needs and nothing else: a model, its weights and its tokenizers, in a folder.

mod config;
mod folder;
mod manifest;
mod weights;

use std::collections::BTreeMap;
use std::path::Path;

use attend_data::Tokenizers;
use attend_model::{ModelConfig, Seq2Seq, Vocabularies};
use candle_core::{Device, Tensor};

pub use config::BundleConfig;
pub(crate) use config::FORMAT;
use config::GenerationConfig;
pub use manifest::{Entry, Manifest, sha256};

use crate::{DecodeConfig, Error, Result};

const CONFIG: &str = "config.json";
const GENERATION_CONFIG: &str = "generation_config.json";
const WEIGHTS: &str = "model.safetensors";

/// A model ready to translate.
pub struct Bundle {
    pub config: BundleConfig,
    pub tokenizers: Tokenizers,
    pub model: Box<dyn Seq2Seq>,
    pub decode: DecodeConfig,
    /// Where the model's parameters are.
    pub device: Device,
}

impl Bundle {
    /// A run folder (its `best`, else its `last` checkpoint), a checkpoint or a bundle folder.
    pub fn open(folder: &Path, device: &Device) -> Result<Self> {
        let folder = folder::resolve(folder)?;
        folder::verify(&folder)?;
        let config = BundleConfig::read(&folder.join(CONFIG))?;
        let decode = GenerationConfig::read(&folder.join(GENERATION_CONFIG))?;
        let tokenizers = Tokenizers::load(&folder)?;
        config.check_tokenizers(&tokenizers, &folder)?;

        let path = folder.join(WEIGHTS);
        let tensors = weights::read(&path, device)?;
        let model = config.model.blank(config.vocabularies, device)?;
        let loaded = model.params().load(&tensors);
        loaded.map_err(|source| Error::Weights { path, source })?;
        tracing::debug!(folder = %folder.display(), parameters = model.params().count(), "opened");
        Ok(Self {
            config,
            tokenizers,
            model,
            decode,
            device: device.clone(),
        })
    }

    /// The files of a bundle as (name, bytes), for a caller that writes them safely.
    pub fn files(
        model: &ModelConfig,
        vocabularies: Vocabularies,
        tokenizers: &Tokenizers,
        decode: &DecodeConfig,
        tensors: &BTreeMap<String, Tensor>,
    ) -> Result<Vec<(String, Vec<u8>)>> {
        let config = BundleConfig::new(model.clone(), vocabularies);
        let generation = GenerationConfig::new(decode, tokenizers.target());
        let mut files = vec![
            (CONFIG.to_string(), config::json(&config)),
            (GENERATION_CONFIG.to_string(), config::json(&generation)),
            (WEIGHTS.to_string(), weights::to_bytes(tensors)?),
        ];
        let sides = match tokenizers {
            Tokenizers::Joint(both) => vec![("tokenizer.json", both)],
            Tokenizers::Separate { source, target } => vec![
                ("tokenizer.source.json", source),
                ("tokenizer.target.json", target),
            ],
        };
        files.extend(sides.into_iter().map(|(name, tokenizer)| {
            let json = tokenizer.to_json().as_bytes();
            (name.to_string(), json.to_vec())
        }));
        Ok(files)
    }
}
