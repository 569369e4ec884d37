//! What translating needs and nothing else: a model, its weights and its tokenizers, in a folder.

mod config;
mod contents;
mod folder;
mod manifest;
mod replace;

use std::collections::BTreeMap;
use std::path::Path;

use attend_data::{Tokenizer, Tokenizers};
use attend_model::{Kernels, Packing, Seq2Seq, Vocabularies};
use candle_core::{Device, Tensor};

pub use config::{BundleConfig, GenerationConfig, Quantization};
pub(crate) use config::{FORMAT, json, parse, read};
pub use contents::{Contents, Format};
pub use manifest::{Entry, Manifest, sha256};

use crate::weights::{quantized_bytes, safetensors};
use crate::{DecodeConfig, Result};

pub(crate) const CONFIG: &str = "config.json";
pub(crate) const GENERATION_CONFIG: &str = "generation_config.json";

/// A model ready to translate.
pub struct Bundle {
    pub config: BundleConfig,
    pub tokenizers: Tokenizers,
    pub model: Box<dyn Seq2Seq>,
    pub decode: DecodeConfig,
}

impl Bundle {
    pub(crate) const WEIGHTS: &str = "model.safetensors";

    /// See [`Contents::open`].
    pub fn open(folder: &Path, device: &Device) -> Result<Self> {
        Contents::open(folder)?.load(device)
    }

    /// The same for translating alone. See [`Contents::load_to_translate`].
    pub fn open_to_translate(
        folder: &Path,
        device: &Device,
        kernels: Kernels,
        packing: Packing,
    ) -> Result<Self> {
        Contents::open(folder)?.load_to_translate(device, kernels, packing)
    }

    /// The files of a bundle as (name, bytes), for a caller that writes them safely.
    pub fn files(
        config: &BundleConfig,
        tokenizers: &Tokenizers,
        decode: &DecodeConfig,
        tensors: &BTreeMap<String, Tensor>,
    ) -> Result<Vec<(String, Vec<u8>)>> {
        let weights = match config.quantization {
            None => safetensors::to_bytes(tensors)?,
            Some(Quantization::Int8) => quantized_bytes(tensors)?,
        };
        let generation = GenerationConfig::new(decode, tokenizers.target());
        let mut files = vec![
            (CONFIG.to_string(), config::json(config)),
            (GENERATION_CONFIG.to_string(), config::json(&generation)),
            (Self::WEIGHTS.to_string(), weights),
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
