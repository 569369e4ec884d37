//! The commands, one file each, and their shared options, input and output.

pub(crate) mod alignments;
pub(crate) mod attend;
mod chunks;
mod drawing;
pub(crate) mod evaluate;
pub(crate) mod export;
mod heads;
pub(crate) mod import;
mod model;
mod output;
mod pairs;
pub(crate) mod push;
pub(crate) mod quantize;
pub(crate) mod score;
pub(crate) mod translate;
mod warnings;

use std::num::NonZeroUsize;

use attend_infer::{DecodeConfig, LengthMeasure, Result};

/// Search options. Each defaults to the value in the model's training config.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Search options (defaults: the model's training config)")]
struct DecodeArgs {
    /// Beam size; 1 is greedy search
    #[arg(long, value_name = "K", conflicts_with = "greedy")]
    beam: Option<NonZeroUsize>,

    /// Use greedy search, the same as --beam 1
    #[arg(long)]
    greedy: bool,

    /// Rank translations by log-probability / L^A, where L is --length-measure; A above 0 favours
    /// long translations
    #[arg(long, value_name = "A", allow_negative_numbers = true)]
    length_penalty: Option<f32>,

    /// The length L: gnmt is (5 + tokens) / 6, tokens is the number of tokens; both include `</s>`
    #[arg(
        long,
        value_name = "gnmt|tokens",
        value_enum,
        hide_possible_values = true
    )]
    length_measure: Option<LengthMeasure>,

    /// Stop as soon as K translations have ended, as CTranslate2 does, even if a better one may follow
    #[arg(long, value_name = "true|false", hide_possible_values = true)]
    early_stopping: Option<bool>,

    /// Maximum number of tokens in a translation, including `</s>`
    #[arg(long, value_name = "N")]
    max_length: Option<usize>,

    /// Maximum number of tokens of a line, including `</s>`; of a longer line only the beginning is
    /// translated
    #[arg(long, value_name = "N")]
    max_source_length: Option<usize>,

    /// Batch size in source tokens times beam size; a smaller batch needs less memory
    #[arg(long, value_name = "N")]
    batch_tokens: Option<NonZeroUsize>,
}

impl DecodeArgs {
    fn apply(&self, mut config: DecodeConfig) -> Result<DecodeConfig> {
        if self.greedy {
            config.beam = 1;
        }
        if let Some(beam) = self.beam {
            config.beam = beam.get();
        }
        if let Some(length_penalty) = self.length_penalty {
            config.length_penalty = length_penalty;
        }
        if let Some(length_measure) = self.length_measure {
            config.length_measure = length_measure;
        }
        if let Some(early_stopping) = self.early_stopping {
            config.early_stopping = early_stopping;
        }
        if let Some(max_length) = self.max_length {
            config.max_length = max_length;
        }
        if let Some(max_source_length) = self.max_source_length {
            config.max_source_length = max_source_length;
        }
        if let Some(batch_tokens) = self.batch_tokens {
            config.batch_tokens = batch_tokens.get();
        }
        config.validate()?;
        Ok(config)
    }
}
