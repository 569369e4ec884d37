use super::{Bleu, Chrf, Metric, Ter, Tokenizer};

/// A metric by its name. They are ordered as they are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum MetricChoice {
    Bleu,
    Chrf,
    #[value(name = "chrf++")]
    ChrfPlusPlus,
    Ter,
}

/// What can be set of metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetricOptions {
    /// For BLEU and chrF: TER ignores case anyway.
    pub lowercase: bool,
    /// For BLEU.
    pub tokenizer: Tokenizer,
}

impl MetricChoice {
    pub const ALL: [Self; 4] = [Self::Bleu, Self::Chrf, Self::ChrfPlusPlus, Self::Ter];

    /// The name in options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bleu => "bleu",
            Self::Chrf => "chrf",
            Self::ChrfPlusPlus => "chrf++",
            Self::Ter => "ter",
        }
    }

    pub fn metric(self, options: MetricOptions) -> Box<dyn Metric> {
        let MetricOptions {
            lowercase,
            tokenizer,
        } = options;
        match self {
            Self::Bleu => Box::new(Bleu {
                lowercase,
                tokenizer,
            }),
            Self::Chrf | Self::ChrfPlusPlus => Box::new(Chrf {
                lowercase,
                words: self == Self::ChrfPlusPlus,
            }),
            Self::Ter => Box::new(Ter),
        }
    }
}
