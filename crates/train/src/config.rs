//! One TOML file says all of a run.

use std::path::{Path, PathBuf};

use attend_data::DataConfig;
use attend_infer::DecodeConfig;
use attend_model::ModelConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Error, MemorySize, Result, ScheduleConfig, toml_error};

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
    /// What happens when a checkpoint or the log cannot be written: "stop" ends the run with an error,
    /// "warn" goes on, and tries again at the next interval. The last checkpoint must be written.
    pub on_save_error: OnSaveError,
    /// An update whose loss or gradient is not finite is left out; after this many in a row, training
    /// stops.
    pub max_skipped: u64,
    /// A loss that is this many times the average of the last updates is reported.
    pub spike: f64,
    /// Memory that training may take, such as "6G": a batch that would take more is computed in parts,
    /// whose gradients add up to the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_memory: Option<MemorySize>,
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
            on_save_error: OnSaveError::Stop,
            max_skipped: 10,
            spike: 3.0,
            max_memory: None,
            schedule: ScheduleConfig::default(),
            adam: AdamConfig::default(),
        }
    }
}

/// What happens when a run cannot write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnSaveError {
    /// It ends.
    Stop,
    /// It goes on, and tries again.
    Warn,
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
    /// Decay of the mean of gradients.
    pub beta1: f64,
    /// Decay of the mean of their squares.
    pub beta2: f64,
    /// Added to the root of that mean, so that nothing is divided by zero.
    pub epsilon: f64,
    /// Share of itself that each parameter loses per step, times the learning rate.
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
    /// Reads a config file, with `key=value` overrides applied in their order. That the files it
    /// names exist is not looked at.
    pub fn read(path: &Path, overrides: &[String]) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read {
            path: path.to_path_buf(),
            source,
        })?;
        let place = path.display().to_string();
        let config: Self = match overrides {
            [] => toml_error::parse(&text, &place)?,
            overrides => {
                let mut table = toml_error::parse(&text, &place)?;
                for text in overrides {
                    set(&mut table, text)?;
                }
                let merged = table.to_string();
                match toml::from_str(&merged) {
                    Ok(config) => config,
                    Err(error) => {
                        // The file's own mistakes come first, with their line.
                        toml_error::parse::<Self>(&text, &place)?;
                        let place = format!("--set {}", overrides.join(" --set "));
                        return Err(toml_error::explain(&error, &merged, &place));
                    }
                }
            }
        };
        config.validate()?;
        Ok(config)
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
        self.data.validate()?;
        self.model.validate()?;
        self.decode.validate()?;
        self.train.validate()?;
        check(
            !self.out.as_os_str().is_empty(),
            "out",
            "is empty",
            "name the folder that the run is to write, such as runs/mine",
        )?;
        let unjudged = self.data.valid.is_none();
        for (key, asked) in [
            ("train.patience", self.train.patience.is_some()),
            ("train.metric", self.train.metric != Metric::Loss),
        ] {
            check(
                !(asked && unjudged),
                key,
                "there is nothing to validate on",
                "give data.valid, or leave the key out",
            )?;
        }
        Ok(())
    }
}

impl TrainConfig {
    fn validate(&self) -> Result<()> {
        let counts = [
            ("train.steps", Some(self.steps)),
            ("train.epochs", self.epochs),
            ("train.accumulate", Some(self.accumulate as u64)),
            ("train.keep", Some(self.keep as u64)),
            ("train.log_every", Some(self.log_every)),
            ("train.max_skipped", Some(self.max_skipped)),
            ("train.patience", self.patience),
        ];
        for (key, count) in counts {
            check(count != Some(0), key, "is 0", "it must be at least 1")?;
        }
        check(
            self.accumulate <= 1_000_000,
            "train.accumulate",
            &format!("is {}", self.accumulate),
            "batches added up for one update: at most a million",
        )?;
        let shares = [
            (
                "train.label_smoothing",
                Some(f64::from(self.label_smoothing)),
            ),
            ("train.moving_average", self.moving_average),
            ("train.adam.beta1", Some(self.adam.beta1)),
            ("train.adam.beta2", Some(self.adam.beta2)),
        ];
        for (key, share) in shares {
            let fine = share.is_none_or(|share| (0.0..1.0).contains(&share));
            let message = format!("is {}", share.unwrap_or_default());
            check(fine, key, &message, "it must be at least 0 and below 1")?;
        }
        let positive = [
            ("train.clip_norm", self.clip_norm),
            ("train.minutes", self.minutes),
            (
                "train.schedule.learning_rate",
                Some(self.schedule.learning_rate),
            ),
        ];
        for (key, value) in positive {
            let fine = value.is_none_or(|value| value > 0.0 && value.is_finite());
            let message = format!("is {}", value.unwrap_or_default());
            check(fine, key, &message, "it must be above 0")?;
        }
        check(
            self.spike > 1.0,
            "train.spike",
            &format!("is {}", self.spike),
            "it must be above 1; 3 is usual",
        )?;
        let ScheduleConfig {
            minimum,
            learning_rate,
            ..
        } = self.schedule;
        check(
            (0.0..=learning_rate).contains(&minimum),
            "train.schedule.minimum",
            &format!("is {minimum}"),
            "it must be from 0 to learning_rate",
        )?;
        let AdamConfig {
            epsilon,
            weight_decay,
            ..
        } = self.adam;
        check(
            (1e-30..1.0).contains(&epsilon),
            "train.adam.epsilon",
            &format!("is {epsilon}"),
            "it must be small but not 0; the paper's is 1e-9",
        )?;
        check(
            (0.0..f64::INFINITY).contains(&weight_decay),
            "train.adam.weight_decay",
            &format!("is {weight_decay}"),
            "it must be at least 0; 0.01 is usual",
        )?;
        check(
            self.metric == Metric::Loss || self.translate > 0,
            "train.metric",
            "needs translations, but train.translate is 0",
            "set train.translate to the number of validation sentences to score",
        )?;
        check(
            self.patience.is_none() || self.validate_every > 0,
            "train.patience",
            "needs validations, but train.validate_every is 0",
            "set train.validate_every to the steps between two validations",
        )
    }
}

fn check(fine: bool, key: &str, message: &str, hint: &str) -> Result<()> {
    match fine {
        true => Ok(()),
        false => Err(Error::Config {
            place: key.to_string(),
            message: message.to_string(),
            hint: Some(hint.to_string()),
        }),
    }
}

/// Changes one value of a config that is still a table: `train.steps=100`.
fn set(table: &mut toml::Table, text: &str) -> Result<()> {
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
    let mut names: Vec<&str> = key.split('.').collect();
    let last = names.pop().unwrap_or_default();
    let mut table = table;
    for name in names {
        let entry = table
            .entry(name)
            .or_insert_with(|| toml::Table::new().into());
        let toml::Value::Table(inner) = entry else {
            let whole = key.split(&format!("{name}.")).next().unwrap_or_default();
            let hint = format!("set all of it: --set '{whole}{name}={{ {last} = … }}'");
            return Err(error(format!("`{name}` is {entry} and not a table"), &hint));
        };
        table = inner;
    }
    table.insert(last.to_string(), value);
    Ok(())
}
