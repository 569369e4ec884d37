use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::config::{HubConfig, SpecialIds};
use crate::{DecodeConfig, EarlyStopping, Error, LengthMeasure, Result};

/// How Hugging Face's `generate` would translate: `generation_config.json`, or the same keys of `config.json` in
/// older folders.
#[derive(Debug, Deserialize)]
struct Generation {
    #[serde(default = "one")]
    num_beams: usize,
    #[serde(default = "one_float")]
    length_penalty: f32,
    early_stopping: Option<EarlyStopping>,
    /// Counts the start token and not `</s>`: the same number as ours.
    min_length: Option<usize>,
    /// Counts neither.
    min_new_tokens: Option<usize>,
    no_repeat_ngram_size: Option<usize>,
    repetition_penalty: Option<f32>,
    do_sample: Option<bool>,
    temperature: Option<f32>,
    top_k: Option<usize>,
    top_p: Option<f32>,
    min_p: Option<f32>,
    /// Counts the start token.
    max_length: Option<usize>,
    max_new_tokens: Option<usize>,
    forced_eos_token_id: Option<u32>,
    bad_words_ids: Option<Vec<Vec<u32>>>,
}

fn one() -> usize {
    1
}

fn one_float() -> f32 {
    1.0
}

/// Keys that change what `generate` chooses, with the value that changes nothing.
fn without_effect() -> [(&'static str, Value); 13] {
    [
        ("num_beam_groups", 1.into()),
        ("diversity_penalty", 0.0.into()),
        ("encoder_repetition_penalty", 1.0.into()),
        ("encoder_no_repeat_ngram_size", 0.into()),
        ("forced_bos_token_id", Value::Null),
        ("suppress_tokens", Value::Null),
        ("begin_suppress_tokens", Value::Null),
        ("sequence_bias", Value::Null),
        ("exponential_decay_length_penalty", Value::Null),
        ("penalty_alpha", Value::Null),
        ("typical_p", 1.0.into()),
        ("epsilon_cutoff", 0.0.into()),
        ("eta_cutoff", 0.0.into()),
    ]
}

/// The settings in a JSON object. `path` is its file, for errors. A setting that Attend's search does not have is
/// refused by name.
pub(super) fn parse(json: &[u8], path: &Path, model: &HubConfig) -> Result<DecodeConfig> {
    let damaged = |message: String| Error::Damaged {
        path: path.into(),
        message,
    };
    let refused = |what: String| Error::Unsupported {
        path: path.into(),
        what: format!("{what} is not supported"),
    };
    let object: Map<String, Value> =
        serde_json::from_slice(json).map_err(|error| damaged(error.to_string()))?;
    for (key, neutral) in without_effect() {
        let value = object.get(key).unwrap_or(&Value::Null);
        let same = value == &neutral || value.as_f64().is_some_and(|n| Some(n) == neutral.as_f64());
        if !same && !value.is_null() {
            return Err(refused(format!("{key} = {value}")));
        }
    }
    let generation: Generation =
        serde_json::from_value(object.into()).map_err(|error| damaged(error.to_string()))?;
    let pad = model.pad_token_id;
    if let Some(words) = &generation.bad_words_ids
        && words.iter().any(|word| word != &[pad])
    {
        let what = format!("bad_words_ids other than [[{pad}]], which is <pad>");
        return Err(refused(what));
    }
    let repetition_penalty = generation.repetition_penalty.unwrap_or(1.0);
    if repetition_penalty != 1.0 && generation.num_beams > 1 {
        // It is applied to log-probabilities there, to logits here.
        let what = format!("repetition_penalty = {repetition_penalty} with num_beams above 1");
        return Err(refused(what));
    }
    let sampling = generation.do_sample.unwrap_or(false);
    if sampling && generation.num_beams > 1 {
        return Err(refused("do_sample = true with num_beams above 1".into()));
    }
    match generation.forced_eos_token_id {
        Some(id) if id != model.eos_token_id => {
            return Err(refused(format!(
                "a forced_eos_token_id of {id} that is not eos_token_id, {}",
                model.eos_token_id
            )));
        }
        Some(_) => {}
        None => tracing::info!(
            "{}: no forced_eos_token_id: a translation that reaches its maximum length ends with </s> all the same",
            path.display()
        ),
    }
    // Its own default, 20, is never meant.
    let longest = generation.max_new_tokens;
    let longest = longest.or(generation.max_length.map(|length| length.saturating_sub(1)));
    let decode = DecodeConfig {
        beam: generation.num_beams,
        length_penalty: generation.length_penalty,
        length_measure: LengthMeasure::Tokens,
        early_stopping: generation.early_stopping.unwrap_or_default(),
        min_length: match generation.min_new_tokens {
            Some(tokens) if tokens > 0 => tokens.saturating_add(1),
            _ => generation.min_length.unwrap_or(0),
        },
        no_repeat_ngram: generation.no_repeat_ngram_size.unwrap_or(0),
        repetition_penalty,
        sampling,
        temperature: generation.temperature.unwrap_or(1.0),
        // Their default counts only where something is drawn.
        top_k: match generation.top_k {
            None if sampling => 50,
            top_k => top_k.unwrap_or(0),
        },
        top_p: generation.top_p.unwrap_or(1.0),
        min_p: generation.min_p.unwrap_or(0.0),
        max_length: longest.unwrap_or(model.max_position_embeddings),
        max_length_ratio: UNLIMITED,
        max_source_length: model.max_position_embeddings,
        ..DecodeConfig::default()
    };
    decode
        .validate()
        .map_err(|error| damaged(error.to_string()))?;
    Ok(decode)
}

/// `generate` has no limit that depends on the source.
const UNLIMITED: f32 = 1e6;

/// The same settings as `generation_config.json`.
pub(super) fn for_transformers(decode: &DecodeConfig, special: SpecialIds) -> Value {
    let SpecialIds { eos, pad } = special;
    let mut settings = json!({
        "num_beams": decode.beam,
        "length_penalty": decode.length_penalty,
        "early_stopping": decode.early_stopping,
        "max_length": decode.max_length + 1, // with the start token
        "renormalize_logits": true,
        "bad_words_ids": [[pad]],
        "decoder_start_token_id": pad,
        "eos_token_id": eos,
        "forced_eos_token_id": eos,
        "pad_token_id": pad,
    });
    if decode.sampling {
        settings["num_beams"] = json!(1);
        settings["do_sample"] = json!(true);
        settings["temperature"] = json!(decode.temperature);
        settings["top_k"] = json!(decode.top_k);
        settings["top_p"] = json!(decode.top_p);
        settings["min_p"] = json!(decode.min_p);
    }
    // `generate` and its users expect only what is set.
    let defaults = DecodeConfig::default();
    for (key, value, default) in [
        (
            "min_length",
            json!(decode.min_length),
            json!(defaults.min_length),
        ),
        (
            "no_repeat_ngram_size",
            json!(decode.no_repeat_ngram),
            json!(defaults.no_repeat_ngram),
        ),
        (
            "repetition_penalty",
            json!(decode.repetition_penalty),
            json!(defaults.repetition_penalty),
        ),
    ] {
        if value != default {
            settings[key] = value;
        }
    }
    settings
}

/// What can be said of these settings there: length is counted in tokens, and has no limit that depends on the
/// source; there is no coverage penalty, and that of repetitions is the same in greedy search only.
pub(crate) fn expressible(decode: &DecodeConfig) -> DecodeConfig {
    DecodeConfig {
        length_measure: LengthMeasure::Tokens,
        max_length_ratio: UNLIMITED,
        min_length_ratio: 0.0,
        coverage_penalty: 0.0,
        repetition_penalty: match decode.beam {
            0 | 1 => decode.repetition_penalty,
            _ => 1.0,
        },
        ..decode.clone()
    }
}
