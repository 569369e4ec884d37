//! One TOML file says all of a run.

use std::path::{Path, PathBuf};

use attend_data::DataConfig;
use attend_infer::DecodeConfig;
use attend_model::ModelConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Error, Result, ScheduleConfig, toml_error};

/// A run of Attend: what to learn from, what to train, how, and how to translate with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Everything random in the run is a function of this number.
    #[serde(default = "one")]
    pub seed: u64,
    /// The folder that the run writes.
    pub out: PathBuf,
    /// The parallel text to learn from, and how it becomes batches.
    pub data: DataConfig,
    /// Which model is trained.
    #[serde(default)]
    pub model: ModelConfig,
    /// How it is trained.
    #[serde(default)]
    pub train: TrainConfig,
    /// How it translates.
    #[serde(default)]
    pub decode: DecodeConfig,
}

fn one() -> u64 {
    1
}

/// `[train]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TrainConfig {
    /// The most updates of the parameters; training ends at the first limit it meets.
    pub steps: u64,
    /// The most passes over the corpus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epochs: Option<u64>,
    /// The most minutes of training.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<f64>,
    /// Batches whose gradients are added up before an update; each token counts the same.
    pub accumulate: usize,
    /// Share of the probability that is spread over all words (Szegedy et al. 2016).
    pub label_smoothing: f32,
    /// Gradients longer than this are scaled down to it, all parameters together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip_norm: Option<f64>,
    /// Decay of a moving average of the parameters, such as 0.999; with it, the averaged
    /// parameters are those that are validated and translate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moving_average: Option<f64>,
    /// Steps between two validations; 0 validates only at the end.
    pub validate_every: u64,
    /// How many validation sentences are translated and scored each time; 0 for none.
    pub translate: usize,
    /// How many translations are shown after each validation.
    pub samples: usize,
    /// What decides which checkpoint is the best, and when training stops early.
    pub metric: Metric,
    /// Training stops after this many validations without improvement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience: Option<u64>,
    /// Steps between two checkpoints; 0 saves only at the end and when validation improves.
    pub save_every: u64,
    /// How many of the last checkpoints are kept, besides the best.
    pub keep: usize,
    /// Steps between two lines of the log.
    pub log_every: u64,
    /// The learning rate.
    pub schedule: ScheduleConfig,
    /// The optimizer.
    pub adam: AdamConfig,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            steps: 100_000,
            epochs: None,
            minutes: None,
            accumulate: 1,
            label_smoothing: 0.1,
            clip_norm: None,
            moving_average: None,
            validate_every: 1000,
            translate: 1000,
            samples: 3,
            metric: Metric::Loss,
            patience: None,
            save_every: 1000,
            keep: 5,
            log_every: 50,
            schedule: ScheduleConfig::default(),
            adam: AdamConfig::default(),
        }
    }
}

/// What validations are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// Cross-entropy per token; lower is better.
    Loss,
    Bleu,
    Chrf,
}

/// `[train.adam]`: Adam with decoupled weight decay. The defaults are the paper's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AdamConfig {
    pub beta1: f64,
    pub beta2: f64,
    pub epsilon: f64,
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

impl Config {
    /// Reads a config file, then applies `key=value` overrides in their order.
    pub fn read(path: &Path, overrides: &[String]) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read {
            path: path.to_path_buf(),
            source,
        })?;
        let mut config: Self = toml_error::parse(&text, &path.display().to_string())?;
        for text in overrides {
            config = config.set(text)?;
        }
        config.validate()?;
        Ok(config)
    }

    /// This config with one value changed: `train.steps=100`.
    fn set(&self, text: &str) -> Result<Self> {
        let error = |message: String, hint: &str| Error::Config {
            place: format!("--set {text}"),
            message,
            hint: Some(hint.to_string()),
        };
        let Some((key, value)) = text.split_once('=') else {
            return Err(error("no `=`".into(), "write it as --set train.steps=100"));
        };
        let (key, value) = (key.trim(), value.trim());
        // A bare word is text: `--set out=runs/mine` needs no quotes.
        let value = toml::from_str::<toml::Table>(&format!("value = {value}"))
            .ok()
            .and_then(|mut table| table.remove("value"))
            .unwrap_or_else(|| toml::Value::String(value.to_string()));
        let mut root = toml::Table::try_from(self).map_err(|e| error(e.to_string(), ""))?;
        let mut names: Vec<&str> = key.split('.').collect();
        let last = names.pop().unwrap_or_default();
        let mut table = &mut root;
        for name in names {
            let entry = table
                .entry(name)
                .or_insert_with(|| toml::Table::new().into());
            let toml::Value::Table(inner) = entry else {
                return Err(error(
                    format!("`{name}` is not a table"),
                    "see `train config CONFIG`",
                ));
            };
            table = inner;
        }
        table.insert(last.to_string(), value);
        let text = toml::to_string(&root).map_err(|e| error(e.to_string(), ""))?;
        toml_error::parse(&text, &format!("--set {key}"))
    }

    /// The whole config, defaults filled in, as TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a config is always valid TOML")
    }

    /// The JSON schema of config files, for editors.
    pub fn schema() -> String {
        let schema = schemars::schema_for!(Config);
        serde_json::to_string_pretty(&schema).expect("a schema is always valid JSON")
    }

    fn validate(&self) -> Result<()> {
        let train = &self.train;
        let check = |fine: bool, key: &str, message: String, hint: &str| {
            if fine {
                return Ok(());
            }
            Err(Error::Config {
                place: key.to_string(),
                message,
                hint: Some(hint.to_string()),
            })
        };
        self.data.validate()?;
        self.model.validate()?;
        self.decode.validate()?;
        let positive = [
            ("train.steps", train.steps),
            ("train.accumulate", train.accumulate as u64),
            ("train.keep", train.keep as u64),
            ("train.log_every", train.log_every),
        ];
        for (key, value) in positive {
            check(value > 0, key, "is 0".into(), "it must be at least 1")?;
        }
        let smoothing = train.label_smoothing;
        check(
            (0.0..1.0).contains(&smoothing),
            "train.label_smoothing",
            format!("is {smoothing}"),
            "it must be at least 0 and below 1; the paper's is 0.1",
        )?;
        for (key, value) in [
            ("train.moving_average", train.moving_average),
            ("train.adam.beta1", Some(train.adam.beta1)),
            ("train.adam.beta2", Some(train.adam.beta2)),
        ] {
            let fine = value.is_none_or(|value| (0.0..1.0).contains(&value));
            check(
                fine,
                key,
                format!("is {}", value.unwrap_or(0.0)),
                "it must be at least 0 and below 1",
            )?;
        }
        let rate = train.schedule.learning_rate;
        check(
            rate > 0.0 && rate.is_finite(),
            "train.schedule.learning_rate",
            format!("is {rate}"),
            "it must be above 0",
        )?;
        for (key, value) in [
            ("train.clip_norm", train.clip_norm),
            ("train.minutes", train.minutes),
        ] {
            let fine = value.is_none_or(|value| value > 0.0);
            check(
                fine,
                key,
                format!("is {}", value.unwrap_or(0.0)),
                "it must be above 0; leave it out for no limit",
            )?;
        }
        let scored = train.metric == Metric::Loss || train.translate > 0;
        check(
            scored,
            "train.metric",
            "needs translations, but train.translate is 0".into(),
            "set train.translate to the number of validation sentences to score",
        )?;
        let judged = train.patience.is_none() || self.data.valid.is_some();
        check(
            judged,
            "train.patience",
            "there is nothing to validate on".into(),
            "give data.valid, or leave train.patience out",
        )
    }
}
