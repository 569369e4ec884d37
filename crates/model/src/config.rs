use candle_core::Device;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    Recurrent, RecurrentConfig, Seq2Seq, Snail, SnailConfig, Transformer, TransformerConfig,
};

/// Which model is trained: one table, named after its family.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum ModelConfig {
    /// The Transformer of "Attention Is All You Need" (Vaswani et al. 2017).
    Transformer(TransformerConfig),
    /// A recurrent encoder and decoder, with or without attention (Sutskever et al. 2014, Bahdanau et
    /// al. 2015, Luong et al. 2015).
    Recurrent(RecurrentConfig),
    /// Causal convolutions and attention in turns, without positions: "A Simple Neural Attentive
    /// Meta-Learner" (Mishra et al. 2017).
    Snail(SnailConfig),
}

impl Default for ModelConfig {
    fn default() -> Self {
        ModelConfig::Transformer(TransformerConfig::default())
    }
}

/// How many tokens each side has, padding included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vocabularies {
    pub source: usize,
    pub target: usize,
    /// Whether both sides use one and the same vocabulary.
    pub joint: bool,
}

/// Numbers that the fused operations hold at once while they train a model, at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activations {
    /// For each token of the source.
    pub source: usize,
    /// For each token of the target.
    pub target: usize,
    /// For each token of the source and each place in the longest source: weights that are kept.
    pub source_to_source: usize,
    /// For each token of the target and each place in the longest target.
    pub target_to_target: usize,
    /// For each token of the target and each place in the longest source.
    pub target_to_source: usize,
    /// Whatever the batch.
    pub fixed: usize,
}

/// A value of `[model.…]` that cannot be.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{key}: {message}")]
pub struct ConfigError {
    /// The key, such as `model.transformer.heads`.
    pub key: &'static str,
    pub message: String,
    pub hint: String,
}

/// Sizes above this are taken for a slip of the pen.
const LARGEST: usize = 100_000;

/// Refuses layers, widths and the like that cannot be.
pub(crate) fn check_sizes(sizes: &[(&'static str, usize)]) -> Result<(), ConfigError> {
    for &(key, size) in sizes {
        if !(1..=LARGEST).contains(&size) {
            return error(key, format!("is {size}"), "it must be from 1 to 100,000");
        }
    }
    Ok(())
}

/// Refuses dropouts that cannot be.
pub(crate) fn check_rates(rates: &[(&'static str, f32)]) -> Result<(), ConfigError> {
    for &(key, rate) in rates {
        if !(0.0..1.0).contains(&rate) {
            return error(
                key,
                format!("is {rate}"),
                "it must be at least 0 and below 1",
            );
        }
    }
    Ok(())
}

pub(crate) fn error(key: &'static str, message: String, hint: &str) -> Result<(), ConfigError> {
    let hint = hint.to_string();
    Err(ConfigError { key, message, hint })
}

impl ModelConfig {
    pub fn validate(&self) -> Result<(), ConfigError> {
        match self {
            ModelConfig::Transformer(config) => config.validate(),
            ModelConfig::Recurrent(config) => config.validate(),
            ModelConfig::Snail(config) => config.validate(),
        }
    }

    /// What needs the vocabularies to judge.
    pub fn validate_with(&self, vocabularies: Vocabularies) -> Result<(), ConfigError> {
        match self {
            ModelConfig::Transformer(config) => config.validate_with(vocabularies),
            ModelConfig::Recurrent(config) => config.validate_with(vocabularies),
            ModelConfig::Snail(config) => config.validate_with(vocabularies),
        }
    }

    /// What training holds beside the parameters: an estimate that is rather too high.
    pub fn activations(&self, vocabularies: Vocabularies) -> Activations {
        match self {
            ModelConfig::Transformer(config) => config.activations(vocabularies),
            ModelConfig::Recurrent(config) => config.activations(vocabularies),
            ModelConfig::Snail(config) => config.activations(vocabularies),
        }
    }

    /// How wide the states are that tokens are predicted from.
    pub fn width(&self) -> usize {
        match self {
            ModelConfig::Transformer(config) => config.d_model,
            ModelConfig::Recurrent(config) => config.d_hidden,
            ModelConfig::Snail(config) => config.d_model,
        }
    }

    /// A model with fresh parameters.
    pub fn build(
        &self,
        vocabularies: Vocabularies,
        seed: u64,
        device: &Device,
    ) -> candle_core::Result<Box<dyn Seq2Seq>> {
        self.with_seed(vocabularies, Some(seed), device)
    }

    /// A model whose parameters are all zero, to be loaded.
    pub fn blank(
        &self,
        vocabularies: Vocabularies,
        device: &Device,
    ) -> candle_core::Result<Box<dyn Seq2Seq>> {
        self.with_seed(vocabularies, None, device)
    }

    fn with_seed(
        &self,
        vocabularies: Vocabularies,
        seed: Option<u64>,
        device: &Device,
    ) -> candle_core::Result<Box<dyn Seq2Seq>> {
        Ok(match self {
            ModelConfig::Transformer(config) => {
                Box::new(Transformer::new(config, vocabularies, seed, device)?)
            }
            ModelConfig::Recurrent(config) => {
                Box::new(Recurrent::new(config, vocabularies, seed, device)?)
            }
            ModelConfig::Snail(config) => Box::new(Snail::new(config, vocabularies, seed, device)?),
        })
    }
}
