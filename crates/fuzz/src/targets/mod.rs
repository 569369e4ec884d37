//! The targets, one file each, by what they read.
//!
//! | target | reads |
//! |---|---|
//! | `config`, `set` | a config file; `--set` |
//! | `corpus`, `gzip`, `zstd`, `xz` | the lines of a text, plain or compressed |
//! | `tsv`, `jsonl`, `tmx` | a corpus in one file |
//! | `pictures`, `features` | files that sources name |
//! | `encode`, `train_tokenizer`, `train_unigram` | text that is encoded, or that a tokenizer is trained on |
//! | `tokenizer` | `tokenizer.json` |
//! | `sentencepiece`, `vocab` | a model of SentencePiece; `vocab.json` of a MarianMT model |
//! | `bundle_config`, `generation_config` | `config.json` and `generation_config.json` of a bundle |
//! | `manifest`, `provenance`, `trainer_state` | those files of a checkpoint |
//! | `safetensors` | `model.safetensors` and `optimizer.safetensors` |
//! | `torch_bin`, `weights_index` | `pytorch_model.bin`; the index of a model in shards |
//! | `ctranslate2` | `model.bin` of CTranslate2 |
//! | `hub_config` | `config.json` of a model of transformers |
//! | `event_log` | `metrics.jsonl` of a run |
//! | `metrics` | text that is scored |
//! | `heatmap` | text that is drawn |
//! | `document` | a line that is taken apart, translated and put together |

mod bundle_config;
mod config;
mod corpus;
mod ctranslate2;
mod document;
mod encode;
mod event_log;
mod features;
mod fixture;
mod generation_config;
mod gzip;
mod heatmap;
mod hub_config;
mod jsonl;
mod manifest;
mod metrics;
mod pictures;
mod provenance;
mod safetensors;
mod sentencepiece;
mod set;
mod tmx;
mod tokenizer;
mod torch_bin;
mod train_tokenizer;
mod train_unigram;
mod trainer_state;
mod tsv;
mod vocab;
mod weights_index;
mod xz;
mod zstd;

use crate::Target;

macro_rules! targets {
    ($($name:ident),* $(,)?) => {
        &[$(Target { name: stringify!($name), run: $name::run }),*]
    };
}

/// All targets.
pub const TARGETS: &[Target] = targets![
    config,
    set,
    corpus,
    gzip,
    zstd,
    xz,
    tsv,
    jsonl,
    tmx,
    pictures,
    features,
    encode,
    train_tokenizer,
    train_unigram,
    tokenizer,
    sentencepiece,
    vocab,
    bundle_config,
    generation_config,
    manifest,
    provenance,
    trainer_state,
    safetensors,
    torch_bin,
    weights_index,
    ctranslate2,
    hub_config,
    event_log,
    metrics,
    heatmap,
    document,
];
