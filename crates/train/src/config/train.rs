use std::path::PathBuf;

use attend_config::{ConfigError, check_ranges};
use attend_infer::run::Validation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ConsistencyConfig, MemorySize, ScheduleConfig};

/// `[train]`: how the model is trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TrainConfig {
    /// The model that training starts from: one of the hub ("hf://OWNER/NAME"), a bundle or a run. Its weights and
    /// its tokenizer are taken. Keys of [model] and [decode] that are left out have its values. Optimizer and
    /// schedule start anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init: Option<PathBuf>,
    /// Weights that are not trained: patterns of their names, such as "encoder.*". `*` stands for any characters. A
    /// leading "model." can be left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub freeze: Vec<String>,
    /// Maximum number of updates. Training ends at the first of `steps`, `epochs` and `minutes` that it
    /// reaches.
    #[schemars(range(min = 1))]
    pub steps: u64,
    /// Maximum number of passes over the training data.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub epochs: Option<u64>,
    /// Maximum training time in minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub minutes: Option<f64>,
    /// Number of batches whose gradients are summed for one update. Every token has the same weight.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub accumulate: usize,
    /// Label smoothing: the share of the target probability that is spread over the whole vocabulary
    /// (Szegedy et al. 2016).
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub label_smoothing: f32,
    /// The probability with which the embedding of a token is zero, on both sides (Sennrich et al. 2016). Its position
    /// is still known. Usual values are 0.1 to 0.2, for small corpora.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub word_dropout: f32,
    /// Maximum norm of the gradient of all parameters together. A gradient with a larger norm is scaled
    /// down to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub clip_norm: Option<f64>,
    /// Decay of an exponential moving average of the parameters, such as 0.999. If it is set, the average
    /// is validated, saved as the model and used to translate.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub moving_average: Option<f64>,
    /// Number of steps between validations. 0 validates only at the end.
    pub validate_every: u64,
    /// Number of validation sentences that are translated and scored at each validation. 0 for none.
    pub translate_sentences: usize,
    /// Number of translations that are printed after each validation, and kept in metrics.jsonl.
    pub samples: usize,
    /// The metric that selects the best checkpoint, and that `patience` watches.
    pub metric: Metric,
    /// Training stops after this many validations without improvement.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub patience: Option<u64>,
    /// Number of steps between checkpoints. 0 saves only at the end and when validation improves.
    pub save_every: u64,
    /// Number of recent checkpoints that are kept, in addition to the best.
    #[schemars(range(min = 1))]
    pub keep: usize,
    /// Number of steps between two lines of the log.
    #[schemars(range(min = 1))]
    pub log_every: u64,
    /// Whether the run's folder also gets the numbers and sample translations of metrics.jsonl as a file of
    /// TensorBoard.
    pub tensorboard: bool,
    /// What to do when a checkpoint or the log cannot be written. "stop" ends the run with an error. "warn"
    /// continues, and tries again at the next interval; the last checkpoint must still be written.
    pub on_save_error: OnSaveError,
    /// An update whose loss or gradient is not finite is skipped. Training stops with an error after this
    /// many in a row.
    #[schemars(range(min = 1))]
    pub max_skipped: u64,
    /// A loss of more than this many times the average of recent updates is reported. 3 is usual.
    #[schemars(extend("exclusiveMinimum" = 1))]
    pub spike: f64,
    /// Maximum memory of the training, such as "6G". A batch that would need more is computed in parts,
    /// whose gradients add up to the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_memory: Option<MemorySize>,
    /// A second pass over every batch, which is to predict what the first one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consistency: Option<ConsistencyConfig>,
    /// The learning rate schedule.
    pub schedule: ScheduleConfig,
    /// The optimizer.
    pub adam: AdamConfig,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            init: None,
            freeze: Vec::new(),
            steps: 100_000,
            epochs: None,
            minutes: None,
            accumulate: 1,
            label_smoothing: 0.1,
            word_dropout: 0.0,
            clip_norm: None,
            moving_average: None,
            validate_every: 1000,
            translate_sentences: 1000,
            samples: 3,
            metric: Metric::Loss,
            patience: None,
            save_every: 1000,
            keep: 5,
            log_every: 50,
            tensorboard: true,
            on_save_error: OnSaveError::Stop,
            max_skipped: 10,
            spike: 3.0,
            max_memory: None,
            consistency: None,
            schedule: ScheduleConfig::default(),
            adam: AdamConfig::default(),
        }
    }
}

fn is_zero(rate: &f32) -> bool {
    *rate == 0.0
}

/// What to do when a file cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnSaveError {
    /// End the run with an error.
    Stop,
    /// Continue, and try again at the next interval.
    Warn,
}

/// The metric by which validations are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// Cross-entropy per token. Lower is better.
    Loss,
    /// BLEU of the translated sentences.
    Bleu,
    /// chrF of the translated sentences.
    Chrf,
}

impl Metric {
    /// What decides which validation is the best: the higher, the better. The loss gets a minus sign.
    pub(crate) fn value(self, validation: &Validation) -> f64 {
        match self {
            Metric::Loss => -validation.loss,
            Metric::Bleu => validation.bleu.unwrap_or(0.0),
            Metric::Chrf => validation.chrf.unwrap_or(0.0),
        }
    }

    /// A [`Metric::value`] in words: "valid loss 2.1034" or "BLEU 34.21".
    pub(crate) fn describe(self, value: f64) -> String {
        match self {
            Metric::Loss => format!("valid loss {:.4}", -value),
            Metric::Bleu => format!("BLEU {value:.2}"),
            Metric::Chrf => format!("chrF2 {value:.2}"),
        }
    }
}

/// `[train.adam]`: Adam with decoupled weight decay. The defaults are the paper's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AdamConfig {
    /// Decay of the gradients' mean, β₁.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub beta1: f64,
    /// Decay of the squared gradients' mean, β₂.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub beta2: f64,
    /// Added to the denominator of the update, to avoid division by zero. It must be small but not 0; the
    /// paper uses 1e-9.
    #[schemars(range(min = 1e-30), extend("exclusiveMaximum" = 1))]
    pub epsilon: f64,
    /// Decoupled weight decay: each parameter is reduced by this share of itself, times the learning rate,
    /// at every step. 0.01 is usual.
    #[schemars(range(min = 0))]
    pub weight_decay: f64,
}

impl Default for AdamConfig {
    fn default() -> Self {
        Self {
            beta1: 0.9,
            beta2: 0.98,
            epsilon: 1e-9,
            weight_decay: 0.0,
        }
    }
}

impl TrainConfig {
    pub(super) fn validate(&self) -> std::result::Result<(), ConfigError> {
        check_ranges(self, "train")?;
        if let Some(consistency) = &self.consistency {
            consistency.validate()?;
        }
        let schedule = &self.schedule;
        if schedule.minimum > schedule.learning_rate {
            return Err(ConfigError::new(
                "train.schedule.minimum",
                format!("is {}", schedule.minimum),
                format!(
                    "it must be at most train.schedule.learning_rate, {}",
                    schedule.learning_rate
                ),
            ));
        }
        if self.metric != Metric::Loss && self.translate_sentences == 0 {
            return Err(ConfigError::new(
                "train.metric",
                "needs translations, but train.translate_sentences is 0",
                "set train.translate_sentences to the number of validation sentences to score",
            ));
        }
        if self.patience.is_some() && self.validate_every == 0 {
            return Err(ConfigError::new(
                "train.patience",
                "needs validations, but train.validate_every is 0",
                "set train.validate_every to the steps between two validations",
            ));
        }
        Ok(())
    }
}
