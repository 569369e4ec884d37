use std::path::Path;

use attend_data::{Tokenizer, Tokenizers};
use attend_model::{ADDED, ModelConfig, Vocabularies};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::file::read_regular;
use crate::{DecodeConfig, EarlyStopping, Error, LengthMeasure, Result};

/// The version of the format that is written and read.
pub(crate) const FORMAT: u64 = 1;

/// `config.json` of a bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleConfig {
    /// Always "attend".
    pub model_type: String,
    /// The version of the format.
    pub format: u64,
    pub model: ModelConfig,
    pub vocabularies: Vocabularies,
    /// The longest sentences that it was trained on, in tokens, including `</s>`. Bundles from before this
    /// key was added do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<usize>,
    /// How the matrices are stored, if not as floats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantization: Option<Quantization>,
}

/// How the matrices of a bundle are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Quantization {
    /// 8-bit integers with a scale for each row
    Int8,
}

impl BundleConfig {
    /// What `model_type` says, for readers of other programs' bundles to tell ours from theirs.
    pub(crate) const MODEL_TYPE: &str = "attend";

    /// The config of a model that was trained on sentences of at most `max_length` tokens.
    pub fn new(model: ModelConfig, vocabularies: Vocabularies, max_length: usize) -> Self {
        Self {
            model_type: Self::MODEL_TYPE.to_string(),
            format: FORMAT,
            model,
            vocabularies,
            max_length: Some(max_length),
            quantization: None,
        }
    }

    pub(super) fn read(path: &Path) -> Result<Self> {
        Self::parse(&read(path)?, path)
    }

    /// Parses and checks the bytes of the file. `path` is for errors.
    pub fn parse(json: &[u8], path: &Path) -> Result<Self> {
        let damaged = |message: String| Error::Damaged {
            path: path.into(),
            message,
        };
        let mut value: Value = parse(json, path)?;
        if value.get("model_type").and_then(Value::as_str) != Some(Self::MODEL_TYPE) {
            return Err(damaged("not the config of an Attend model".into()));
        }
        // Before the rest, which another version may spell differently.
        let format = value.get("format").and_then(Value::as_u64);
        match format.ok_or_else(|| damaged("no `format` version".into()))? {
            FORMAT => {}
            found => {
                let path = path.into();
                return Err(Error::Format { path, found });
            }
        }
        add_keys(&mut value);
        let config: Self =
            serde_json::from_value(value.clone()).map_err(|e| damaged(e.to_string()))?;
        // The defaults are for training. Another activation or number of heads would be silently wrong here.
        let complete = serde_json::to_value(&config.model).map_err(|e| damaged(e.to_string()))?;
        if let Some(key) = missing_key(&complete, &value["model"]) {
            return Err(damaged(format!("no `model.{key}`")));
        }
        let valid = config.model.validate_with(config.vocabularies);
        valid.map_err(|e| damaged(e.to_string()))?;
        Ok(config)
    }

    pub(crate) fn check_tokenizers(&self, tokenizers: &Tokenizers, folder: &Path) -> Result<()> {
        let found = super::vocabularies(tokenizers);
        let in_words = |v: Vocabularies| match v.source {
            None => format!("{} target tokens and no source tokens", v.target),
            Some(source) if v.joint => format!("{source} tokens for both sides"),
            Some(source) => format!("{source} source and {} target tokens", v.target),
        };
        if found == self.vocabularies {
            return Ok(());
        }
        Err(Error::Vocabularies {
            folder: folder.into(),
            found: in_words(found),
            expected: in_words(self.vocabularies),
        })
    }
}

/// `generation_config.json`: [`DecodeConfig`] and the special tokens, under the names that Hugging
/// Face's `generate` knows. What it does not know, it leaves alone.
#[derive(Serialize, Deserialize)]
pub struct GenerationConfig {
    num_beams: usize,
    length_penalty: f32,
    /// Not a key of `generate`, which always divides by the number of tokens: it ranks translations as
    /// Attend does if this is `tokens`. Bundles from before this key was added mean `gnmt`.
    #[serde(default)]
    length_measure: LengthMeasure,
    /// Unlike their `max_length`, this does not count the start token.
    max_new_tokens: usize,
    max_length_ratio: f32,
    /// Bundles from before this key was added have the default.
    #[serde(default = "max_source_length")]
    max_source_length: usize,
    batch_tokens: usize,
    /// Bundles from before these keys were added have the defaults.
    #[serde(flatten)]
    options: Options,
    #[serde(flatten, skip_deserializing)]
    fixed: Option<Fixed>,
}

/// Keys that may be missing.
#[derive(Serialize, Deserialize)]
#[serde(default)]
struct Options {
    early_stopping: EarlyStopping,
    coverage_penalty: f32,
    /// Theirs counts the start token and not `</s>`, so that the number is the same.
    min_length: usize,
    min_length_ratio: f32,
    no_repeat_ngram_size: usize,
    /// Their beam search applies it to log-probabilities, not to logits.
    repetition_penalty: f32,
    do_sample: bool,
    temperature: f32,
    top_k: usize,
    top_p: f32,
    min_p: f32,
    seed: u64,
}

impl Options {
    fn new(decode: &DecodeConfig) -> Self {
        Self {
            early_stopping: decode.early_stopping,
            coverage_penalty: decode.coverage_penalty,
            min_length: decode.min_length,
            min_length_ratio: decode.min_length_ratio,
            no_repeat_ngram_size: decode.no_repeat_ngram,
            repetition_penalty: decode.repetition_penalty,
            do_sample: decode.sampling,
            temperature: decode.temperature,
            top_k: decode.top_k,
            top_p: decode.top_p,
            min_p: decode.min_p,
            seed: decode.seed,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new(&DecodeConfig::default())
    }
}

/// What our search always does, said for others.
#[derive(Serialize)]
struct Fixed {
    renormalize_logits: bool,
    bad_words_ids: [[u32; 1]; 1],
    decoder_start_token_id: u32,
    eos_token_id: u32,
    forced_eos_token_id: u32,
    pad_token_id: u32,
}

impl GenerationConfig {
    pub(super) fn new(decode: &DecodeConfig, target: &Tokenizer) -> Self {
        let (eos, pad) = (target.eos(), target.pad());
        Self {
            num_beams: decode.beam,
            length_penalty: decode.length_penalty,
            length_measure: decode.length_measure,
            max_new_tokens: decode.max_length,
            max_length_ratio: decode.max_length_ratio,
            max_source_length: decode.max_source_length,
            batch_tokens: decode.batch_tokens,
            options: Options::new(decode),
            fixed: Some(Fixed {
                renormalize_logits: true,
                bad_words_ids: [[pad]],
                decoder_start_token_id: pad,
                eos_token_id: eos,
                forced_eos_token_id: eos,
                pad_token_id: pad,
            }),
        }
    }

    pub(super) fn read(path: &Path) -> Result<DecodeConfig> {
        Self::parse(&read(path)?, path)
    }

    /// Parses and checks the bytes of the file. `path` is for errors.
    pub fn parse(json: &[u8], path: &Path) -> Result<DecodeConfig> {
        let generation: Self = parse(json, path)?;
        let options = generation.options;
        let decode = DecodeConfig {
            beam: generation.num_beams,
            length_penalty: generation.length_penalty,
            length_measure: generation.length_measure,
            max_length: generation.max_new_tokens,
            max_length_ratio: generation.max_length_ratio,
            max_source_length: generation.max_source_length,
            batch_tokens: generation.batch_tokens,
            early_stopping: options.early_stopping,
            coverage_penalty: options.coverage_penalty,
            min_length: options.min_length,
            min_length_ratio: options.min_length_ratio,
            no_repeat_ngram: options.no_repeat_ngram_size,
            repetition_penalty: options.repetition_penalty,
            sampling: options.do_sample,
            temperature: options.temperature,
            top_k: options.top_k,
            top_p: options.top_p,
            min_p: options.min_p,
            seed: options.seed,
        };
        decode.validate().map_err(|e| Error::Damaged {
            path: path.into(),
            message: e.to_string(),
        })?;
        Ok(decode)
    }
}

/// Writes out what a bundle means that was saved before a key was added.
fn add_keys(config: &mut Value) {
    for added in ADDED {
        let path = format!("/{}", added.key.replace('.', "/"));
        let Some((table, key)) = path.rsplit_once('/') else {
            continue;
        };
        let Some(Value::Object(table)) = config.pointer_mut(table) else {
            continue;
        };
        let (other, with) = added.only_with;
        if table.get(other).and_then(Value::as_str) == Some(with) {
            table.entry(key).or_insert(added.value.into());
        }
    }
}

/// The first key of a model's table in `complete` that `given` lacks, such as `transformer.heads`.
fn missing_key(complete: &Value, given: &Value) -> Option<String> {
    complete.as_object()?.iter().find_map(|(model, keys)| {
        let mut keys = keys.as_object()?.keys();
        let missing = keys.find(|key| given[model].get(key).is_none())?;
        Some(format!("{model}.{missing}"))
    })
}

fn max_source_length() -> usize {
    DecodeConfig::default().max_source_length
}

pub(crate) fn json(value: &impl Serialize) -> Vec<u8> {
    let text = serde_json::to_string_pretty(value).expect("numbers and strings always serialize");
    (text + "\n").into_bytes()
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    read_regular(path).map_err(|source| Error::read(path, source))
}

pub(crate) fn parse<T: DeserializeOwned>(json: &[u8], path: &Path) -> Result<T> {
    serde_json::from_slice(json).map_err(|e| Error::Damaged {
        path: path.into(),
        message: e.to_string(),
    })
}
