use std::num::NonZeroUsize;

use attend_infer::{DecodeConfig, EarlyStopping, Error, LengthMeasure, Result};

/// Search options. Each defaults to the value in the model's training config.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Search options (defaults: the model's training config)")]
pub(super) struct DecodeArgs {
    /// Beam size; 1 is greedy search
    #[arg(long, value_name = "K", conflicts_with = "greedy")]
    beam: Option<NonZeroUsize>,

    /// Use greedy search, the same as --beam 1
    #[arg(long)]
    greedy: bool,

    #[command(flatten)]
    length: LengthArgs,

    /// When to stop, once K translations have ended: true at once, as CTranslate2 does; false when the best
    /// other one would rank lower if it ended now; never when it would at any length
    #[arg(long, value_name = "true|false|never")]
    early_stopping: Option<EarlyStopping>,

    /// Rank translations of a beam lower that attend little to tokens of the source: B times the sum of
    /// log(min(attention, 1)) is added to their score; 0 is off
    #[arg(long, value_name = "B")]
    coverage_penalty: Option<f32>,

    /// Maximum number of tokens in a translation, including `</s>`
    #[arg(long, value_name = "N")]
    max_length: Option<usize>,

    /// Maximum number of tokens in a translation of n source tokens: n * R + 10
    #[arg(long, value_name = "R")]
    max_length_ratio: Option<f32>,

    /// Minimum number of tokens in a translation, including `</s>`
    #[arg(long, value_name = "N")]
    min_length: Option<usize>,

    /// Minimum number of tokens in a translation of n source tokens: n * R
    #[arg(long, value_name = "R")]
    min_length_ratio: Option<f32>,

    /// Have no sequence of N tokens twice in a translation; 0 is off
    #[arg(long, value_name = "N")]
    no_repeat_ngram: Option<usize>,

    /// Divide the positive logits of tokens that a translation has already by P, and multiply the negative
    /// ones; 1 is off
    #[arg(long, value_name = "P")]
    repetition_penalty: Option<f32>,

    /// Draw each token from the model's probabilities instead of searching for the likeliest translation
    #[arg(long, conflicts_with_all = ["beam", "greedy"])]
    sample: bool,

    /// Divide the logits by T before drawing; below 1 favours likely tokens
    #[arg(long, value_name = "T")]
    temperature: Option<f32>,

    /// Draw only from the N likeliest tokens; 0 is off
    #[arg(long, value_name = "N")]
    top_k: Option<usize>,

    /// Draw only from the likeliest tokens that together have the probability P; 1 is off
    #[arg(long, value_name = "P")]
    top_p: Option<f32>,

    /// Draw only tokens with at least P times the probability of the likeliest; 0 is off
    #[arg(long, value_name = "P")]
    min_p: Option<f32>,

    /// Draw other samples; the same number draws the same
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Maximum number of tokens of a line, including `</s>`; of a longer line only the beginning is
    /// translated
    #[arg(long, value_name = "N")]
    max_source_length: Option<usize>,

    /// Batch size in source tokens times beam size; a smaller batch needs less memory
    #[arg(long, value_name = "N")]
    batch_tokens: Option<NonZeroUsize>,
}

/// How the length of a translation counts.
#[derive(Debug, clap::Args)]
pub(super) struct LengthArgs {
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
}

impl LengthArgs {
    pub(super) fn apply(&self, config: &mut DecodeConfig) {
        set(&mut config.length_penalty, self.length_penalty);
        set(&mut config.length_measure, self.length_measure);
    }
}

impl DecodeArgs {
    pub(super) fn apply(&self, mut config: DecodeConfig) -> Result<DecodeConfig> {
        if self.greedy {
            config.beam = 1;
        }
        if let Some(beam) = self.beam {
            config.beam = beam.get();
        }
        config.sampling |= self.sample;
        // Who asks for a search wants no samples, whatever the model's config says.
        config.sampling &= !self.greedy && self.beam.is_none();
        self.check_effects(&config)?;
        self.length.apply(&mut config);
        set(&mut config.early_stopping, self.early_stopping);
        set(&mut config.coverage_penalty, self.coverage_penalty);
        set(&mut config.max_length, self.max_length);
        set(&mut config.max_length_ratio, self.max_length_ratio);
        set(&mut config.min_length, self.min_length);
        set(&mut config.min_length_ratio, self.min_length_ratio);
        set(&mut config.no_repeat_ngram, self.no_repeat_ngram);
        set(&mut config.repetition_penalty, self.repetition_penalty);
        set(&mut config.temperature, self.temperature);
        set(&mut config.top_k, self.top_k);
        set(&mut config.top_p, self.top_p);
        set(&mut config.min_p, self.min_p);
        set(&mut config.seed, self.seed);
        set(&mut config.max_source_length, self.max_source_length);
        if let Some(batch_tokens) = self.batch_tokens {
            config.batch_tokens = batch_tokens.get();
        }
        config.validate()?;
        Ok(config)
    }

    /// Refuses options that would have no effect.
    fn check_effects(&self, config: &DecodeConfig) -> Result<()> {
        if self.coverage_penalty.is_some() && (config.sampling || config.beam < 2) {
            return Err(Error::Usage {
                message: "--coverage-penalty has no effect: there is no beam to rank".into(),
                hint: "add --beam 4".into(),
            });
        }
        let options = [
            ("--temperature", self.temperature.is_some()),
            ("--top-k", self.top_k.is_some()),
            ("--top-p", self.top_p.is_some()),
            ("--min-p", self.min_p.is_some()),
            ("--seed", self.seed.is_some()),
        ];
        match options.iter().find(|(_, given)| *given) {
            Some((option, _)) if !config.sampling => Err(Error::Usage {
                message: format!("{option} has no effect: nothing is drawn"),
                hint: "add --sample".into(),
            }),
            _ => Ok(()),
        }
    }
}

/// Takes over what was given.
fn set<T: Copy>(option: &mut T, given: Option<T>) {
    *option = given.unwrap_or(*option);
}
