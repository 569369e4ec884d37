use std::collections::BTreeMap;

use attend_data::{EOS, PAD, Tokenizers, UNK};
use candle_core::Tensor;
use serde_json::{Map, Value, json};

use super::config::{HubConfig, SpecialIds};
use super::family::Family;
use super::generation;
use super::read::TARGET_FOLDER;
use super::tensors::for_transformers;
use crate::bundle::{BundleConfig, CONFIG, GENERATION_CONFIG, json as to_json};
use crate::export::exportable;
use crate::weights::safetensors;
use crate::{Bundle, DecodeConfig, Error, Result};

/// The files of a folder that transformers loads, as (name, bytes): a post-norm model as MarianMT, a pre-norm one as
/// Pegasus. Models that neither can express are refused by name.
pub(crate) fn files(
    config: &BundleConfig,
    tokenizers: &Tokenizers,
    decode: &DecodeConfig,
    tensors: BTreeMap<String, Tensor>,
) -> Result<Vec<(String, Vec<u8>)>> {
    let model = exportable(&config.model)?;
    let family = Family::of_model(model);
    let joint = config.vocabularies.joint;
    if family == Family::Pegasus && !joint {
        return Err(Error::Unexportable {
            what: "it is pre-norm with two vocabularies, and Pegasus has one".into(),
            hint: "CTranslate2 has such models: `infer export RUN --to ctranslate2`".into(),
        });
    }
    let target = tokenizers.target();
    let special = SpecialIds {
        eos: target.eos(),
        pad: target.pad(),
    };
    let positions = positions(config, decode);
    let vocabulary = config.vocabularies.target;
    let tensors = for_transformers(family, model, tensors, vocabulary, positions)?;
    let hub = HubConfig::new(family, model, config.vocabularies, special, positions);
    let generation = generation::for_transformers(decode, special);
    let mut files = vec![
        (CONFIG.to_string(), to_json(&hub)),
        (GENERATION_CONFIG.to_string(), to_json(&generation)),
        (
            Bundle::WEIGHTS.to_string(),
            safetensors::to_bytes(&tensors)?,
        ),
    ];
    files.extend(tokenizer_files(tokenizers, positions));
    Ok(files)
}

/// How many positions the model's folder promises, on both sides.
fn positions(config: &BundleConfig, decode: &DecodeConfig) -> usize {
    let trained = config.max_length.unwrap_or(0);
    // `generate` counts the start token.
    trained
        .max(decode.max_source_length)
        .max(decode.max_length + 1)
}

/// The tokenizers as `AutoTokenizer` loads them. It knows one `tokenizer.json` in a folder, so that of the target,
/// where it is another one, has a folder of its own.
fn tokenizer_files(tokenizers: &Tokenizers, longest: usize) -> Vec<(String, Vec<u8>)> {
    let common = json!({
        "eos_token": EOS,
        "unk_token": UNK,
        "pad_token": PAD,
        "model_max_length": longest,
        "model_input_names": ["input_ids", "attention_mask"],
        "clean_up_tokenization_spaces": false,
    });
    let settings = |more: Value| {
        let mut settings: Map<String, Value> = common.as_object().cloned().unwrap_or_default();
        settings.extend(more.as_object().cloned().unwrap_or_default());
        to_json(&settings)
    };
    let config = "tokenizer_config.json".to_string();
    let sides = tokenizers
        .source()
        .map(|source| (source, tokenizers.target()));
    let json = sides.and_then(|(source, target)| Some((source.to_json()?, target.to_json()?)));
    let Some((source, target)) = json else {
        let marian = settings(json!({
            "tokenizer_class": "MarianTokenizer",
            "separate_vocabs": !tokenizers.is_joint(),
        }));
        let files = tokenizers.files().into_iter();
        let files = files.map(|(name, bytes)| (name.to_string(), bytes));
        return files.chain([(config, marian)]).collect();
    };
    let fast = settings(json!({"tokenizer_class": "PreTrainedTokenizerFast"}));
    let name = "tokenizer.json";
    let mut files = vec![
        (name.to_string(), source.as_bytes().to_vec()),
        (config.clone(), fast.clone()),
    ];
    if source != target {
        let inside = |name: &str| format!("{TARGET_FOLDER}/{name}");
        files.push((inside(name), target.as_bytes().to_vec()));
        files.push((inside(&config), fast));
    }
    files
}
