//! One file per command, and what they share.

pub(crate) mod attend;
mod blocks;
mod drawing;
pub(crate) mod evaluate;
mod output;
pub(crate) mod translate;

use std::num::NonZeroUsize;

use attend_infer::{DecodeConfig, Result};

/// How to search. What is not given is as the model's training config says.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Searching")]
struct DecodeArgs {
    /// How many translations of a sentence to follow at once; 1 is greedy search
    #[arg(long, value_name = "K", conflicts_with = "greedy")]
    beam: Option<NonZeroUsize>,

    /// Take the likeliest word each time: the same as --beam 1
    #[arg(long)]
    greedy: bool,

    /// Rank translations by log-probability / ((5 + length) / 6)^A: above 0 favours long ones
    #[arg(long, value_name = "A", allow_negative_numbers = true)]
    length_penalty: Option<f32>,

    /// The most tokens of a translation
    #[arg(long, value_name = "N")]
    max_length: Option<usize>,

    /// How much to translate at once: source tokens times beam. Less needs less memory
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
        if let Some(max_length) = self.max_length {
            config.max_length = max_length;
        }
        if let Some(batch_tokens) = self.batch_tokens {
            config.batch_tokens = batch_tokens.get();
        }
        config.validate()?;
        Ok(config)
    }
}
