use std::path::Path;

use attend_model::{Activation, ModelConfig, NormKind, Tie, TransformerConfig, Vocabularies};
use serde::{Deserialize, Serialize};

use super::family::Family;
use crate::{Error, Result};

/// `config.json` of a MarianMT or Pegasus model: what Attend reads and writes of it. Other keys are ignored, as
/// transformers ignores them in these models.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HubConfig {
    architectures: Vec<String>,
    model_type: String,
    vocab_size: usize,
    /// Of the target; absent in models with one vocabulary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decoder_vocab_size: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    share_encoder_decoder_embeddings: Option<bool>,
    #[serde(default = "yes")]
    tie_word_embeddings: bool,
    d_model: usize,
    encoder_layers: usize,
    decoder_layers: usize,
    encoder_ffn_dim: usize,
    decoder_ffn_dim: usize,
    encoder_attention_heads: usize,
    decoder_attention_heads: usize,
    activation_function: String,
    #[serde(default)]
    scale_embedding: bool,
    #[serde(default)]
    dropout: f32,
    #[serde(default)]
    attention_dropout: f32,
    #[serde(default)]
    activation_dropout: f32,
    pub(super) max_position_embeddings: usize,
    pub(super) pad_token_id: u32,
    pub(super) eos_token_id: u32,
    pub(super) decoder_start_token_id: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    forced_eos_token_id: Option<u32>,
    #[serde(default = "yes")]
    is_encoder_decoder: bool,
    #[serde(default = "yes")]
    use_cache: bool,
    /// Written for CTranslate2's converter, which asks for it in Pegasus models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    normalize_before: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    normalize_embedding: Option<bool>,
    /// The type of the stored tensors. Only written: a file says itself of what type its tensors are.
    #[serde(default, skip_deserializing, skip_serializing_if = "str::is_empty")]
    dtype: &'static str,
}

fn yes() -> bool {
    true
}

/// The names of activation functions there and here; the first of each is written.
const ACTIVATIONS: [(&str, Activation); 4] = [
    ("relu", Activation::Relu),
    ("gelu", Activation::Gelu),
    ("swish", Activation::Swish),
    ("silu", Activation::Swish),
];

/// The tokens with a meaning of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpecialIds {
    pub(super) eos: u32,
    pub(super) pad: u32,
}

impl HubConfig {
    /// The config of a model, for a folder that transformers loads.
    pub(super) fn new(
        family: Family,
        model: &TransformerConfig,
        vocabularies: Vocabularies,
        special: SpecialIds,
        positions: usize,
    ) -> Self {
        let (marian, tied) = (family == Family::Marian, model.tie == Tie::All);
        let activations = ACTIVATIONS.iter();
        let mut names = activations.filter(|(_, activation)| *activation == model.activation);
        Self {
            architectures: vec![family.architecture().to_string()],
            model_type: family.model_type().to_string(),
            vocab_size: vocabularies.source.unwrap_or(vocabularies.target),
            decoder_vocab_size: marian.then_some(vocabularies.target),
            share_encoder_decoder_embeddings: marian.then_some(tied),
            // Pegasus ties everything or nothing.
            tie_word_embeddings: tied || (marian && model.tie == Tie::Decoder),
            d_model: model.d_model,
            encoder_layers: model.encoder_layers,
            decoder_layers: model.decoder_layers,
            encoder_ffn_dim: model.d_ff,
            decoder_ffn_dim: model.d_ff,
            encoder_attention_heads: model.heads,
            decoder_attention_heads: model.heads,
            activation_function: names.next().map_or("", |(name, _)| name).to_string(),
            scale_embedding: true,
            dropout: model.dropout,
            attention_dropout: model.attention_dropout,
            activation_dropout: model.activation_dropout,
            max_position_embeddings: positions,
            pad_token_id: special.pad,
            eos_token_id: special.eos,
            decoder_start_token_id: special.pad,
            forced_eos_token_id: Some(special.eos),
            is_encoder_decoder: true,
            use_cache: true,
            normalize_before: (!marian).then_some(true),
            normalize_embedding: (!marian).then_some(false),
            dtype: "float32",
        }
    }

    /// Parses and checks the bytes of the file. `path` is for errors.
    pub(crate) fn parse(json: &[u8], path: &Path) -> Result<Self> {
        let config: Self = serde_json::from_slice(json).map_err(|error| Error::Damaged {
            path: path.into(),
            message: error.to_string(),
        })?;
        config.check(path)?;
        Ok(config)
    }

    /// Refuses by name what Attend's Transformer does not compute.
    fn check(&self, path: &Path) -> Result<()> {
        let refused = |what: String| Error::Unsupported {
            path: path.into(),
            what: format!("{what} is not supported"),
        };
        let activation = &self.activation_function;
        if self.activation().is_none() {
            return Err(refused(format!("activation_function \"{activation}\"")));
        }
        for (key, encoder, decoder) in [
            ("ffn_dim", self.encoder_ffn_dim, self.decoder_ffn_dim),
            (
                "attention_heads",
                self.encoder_attention_heads,
                self.decoder_attention_heads,
            ),
        ] {
            if encoder != decoder {
                return Err(refused(format!(
                    "an encoder_{key} of {encoder} with a decoder_{key} of {decoder}"
                )));
            }
        }
        if !self.scale_embedding {
            return Err(refused("scale_embedding = false".into()));
        }
        let (pad, start) = (self.pad_token_id, self.decoder_start_token_id);
        if start != pad {
            return Err(refused(format!(
                "a decoder_start_token_id of {start} that is not pad_token_id, {pad}"
            )));
        }
        let (_, target) = self.tokens();
        if pad as usize + 1 != target {
            return Err(refused(format!(
                "a pad_token_id of {pad} that is not the last of {target} tokens"
            )));
        }
        Ok(())
    }

    fn activation(&self) -> Option<Activation> {
        let mut known = ACTIVATIONS.iter();
        let found = known.find(|(name, _)| *name == self.activation_function);
        found.map(|(_, activation)| *activation)
    }

    fn family(&self) -> Option<Family> {
        Family::of(&self.model_type)
    }

    /// The number of tokens of source and target.
    pub(super) fn tokens(&self) -> (usize, usize) {
        let target = self.decoder_vocab_size.unwrap_or(self.vocab_size);
        (self.vocab_size, target)
    }

    /// Which embeddings are one. Without `tie_word_embeddings`, transformers shares none of them.
    fn tie(&self) -> Tie {
        let shared = self.share_encoder_decoder_embeddings.unwrap_or(true);
        match (self.tie_word_embeddings, shared) {
            (true, true) => Tie::All,
            (true, false) => Tie::Decoder,
            (false, _) => Tie::None,
        }
    }

    /// The model, as far as the config tells: whether it has an output bias is said by its tensors.
    pub(super) fn model(&self) -> ModelConfig {
        ModelConfig::Transformer(TransformerConfig {
            encoder_layers: self.encoder_layers,
            decoder_layers: self.decoder_layers,
            d_model: self.d_model,
            heads: self.encoder_attention_heads,
            d_ff: self.encoder_ffn_dim,
            dropout: self.dropout,
            attention_dropout: self.attention_dropout,
            activation_dropout: self.activation_dropout,
            activation: self.activation().unwrap_or(Activation::Relu),
            norm: match self.family() {
                Some(Family::Pegasus) => NormKind::Pre,
                _ => NormKind::Post,
            },
            tie: self.tie(),
            ..TransformerConfig::default()
        })
    }
}
