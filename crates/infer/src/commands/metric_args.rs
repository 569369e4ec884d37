use attend_infer::metrics::{Metric, MetricChoice, MetricOptions, Tokenizer};

/// How metrics see text.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Metrics")]
pub(super) struct MetricArgs {
    /// Ignore the difference between upper and lower case in BLEU, chrF and exact match; TER always does
    #[arg(long)]
    lowercase: bool,

    /// How BLEU splits lines into words: 13a for Western languages, none at spaces, char every character, intl at
    /// punctuation and symbols of all of Unicode, zh every Chinese character
    #[arg(
        long,
        value_name = "13a|none|char|intl|zh",
        value_enum,
        default_value = "13a",
        hide_possible_values = true
    )]
    tokenize: Tokenizer,
}

impl MetricArgs {
    pub(super) fn metrics(&self, choices: &[MetricChoice]) -> Vec<Box<dyn Metric>> {
        let choices = ordered(choices).into_iter();
        choices
            .map(|choice| choice.metric(self.options()))
            .collect()
    }

    pub(super) fn options(&self) -> MetricOptions {
        MetricOptions {
            lowercase: self.lowercase,
            tokenizer: self.tokenize,
        }
    }
}

/// The metrics in the order in which they are printed, each once.
pub(super) fn ordered(choices: &[MetricChoice]) -> Vec<MetricChoice> {
    let mut choices = choices.to_vec();
    choices.sort_unstable();
    choices.dedup();
    choices
}
