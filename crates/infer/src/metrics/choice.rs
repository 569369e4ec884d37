use super::{Bleu, Chrf, Exact, Metric, Ter, Tokenizer};

/// A metric by its name. They are ordered as they are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum MetricChoice {
    Bleu,
    Chrf,
    #[value(name = "chrf++")]
    ChrfPlusPlus,
    Ter,
    Exact,
}

/// What can be set of metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetricOptions {
    /// For all but TER, which ignores case anyway.
    pub lowercase: bool,
    /// For BLEU.
    pub tokenizer: Tokenizer,
}

impl MetricChoice {
    pub const ALL: [Self; 5] = [
        Self::Bleu,
        Self::Chrf,
        Self::ChrfPlusPlus,
        Self::Ter,
        Self::Exact,
    ];

    /// Those of sacreBLEU.
    pub const SACREBLEU: [Self; 4] = [Self::Bleu, Self::Chrf, Self::ChrfPlusPlus, Self::Ter];

    /// The name in options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bleu => "bleu",
            Self::Chrf => "chrf",
            Self::ChrfPlusPlus => "chrf++",
            Self::Ter => "ter",
            Self::Exact => "exact",
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
            Self::Exact => Box::new(Exact { lowercase }),
        }
    }
}
