//! How two configs differ, and which differences are allowed when a run is resumed.

use std::collections::BTreeMap;
use std::fmt;

use crate::config::renamed;
use crate::{Config, Error, Result};

/// A key that has different values in two configs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Such as `train.schedule.warmup`.
    pub key: String,
    /// `None` if the key was not set.
    pub before: Option<String>,
    pub after: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let text = |value: &Option<String>| value.clone().unwrap_or("not set".into());
        let (before, after) = (text(&self.before), text(&self.after));
        write!(f, "{}: {before} → {after}", self.key)
    }
}

/// Keys, and tables of keys, that may change when a run is resumed: when to stop, validate, save and log, and the
/// paths of files whose content is checked. All others change the training.
const FREE: [&str; 20] = [
    "out",
    "decode",
    "data.train",
    "data.corpora",
    "data.cache",
    "data.valid",
    "data.test",
    "train.steps",
    "train.epochs",
    "train.minutes",
    "train.validate_every",
    "train.samples",
    "train.patience",
    "train.save_every",
    "train.keep",
    "train.log_every",
    "train.tensorboard",
    "train.on_save_error",
    "train.max_skipped",
    "train.spike",
];

/// All keys whose values differ, sorted by name.
pub fn differences(before: &Config, after: &Config) -> Vec<Difference> {
    let flat = |config: &Config| flat(&config.to_full_toml());
    let (mut before, mut after) = (flat(before), flat(after));
    let mut keys: Vec<String> = before.keys().chain(after.keys()).cloned().collect();
    keys.sort();
    keys.dedup();
    let differences = keys.into_iter().map(|key| Difference {
        before: before.remove(&key),
        after: after.remove(&key),
        key,
    });
    differences.filter(|d| d.before != d.after).collect()
}

/// Every key of a config's TOML, and its value.
pub(crate) fn flat(toml: &str) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    let table = toml.parse();
    let table: toml::Table = table.expect("a config is always valid TOML");
    flatten("", &table, &mut values);
    values
}

fn flatten(prefix: &str, table: &toml::Table, values: &mut BTreeMap<String, String>) {
    for (name, value) in table {
        let key = match prefix {
            "" => name.clone(),
            prefix => format!("{prefix}.{name}"),
        };
        match value {
            toml::Value::Table(table) => flatten(&key, table, values),
            value => {
                values.insert(key, value.to_string());
            }
        }
    }
}

/// Whether one of `keys` is this key or a table that contains it.
pub(crate) fn covers<'a>(keys: impl IntoIterator<Item = &'a str>, key: &str) -> bool {
    keys.into_iter().any(|allowed| {
        let below = key.strip_prefix(allowed);
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// The differences between the config of a checkpoint and the one that training continues with.
#[derive(Debug)]
pub(crate) struct Changes {
    free: Vec<Difference>,
    allowed: Vec<Difference>,
}

impl Changes {
    /// Compares two configs. A difference that is neither free nor covered by `allow` is an error.
    pub(crate) fn check(before: &Config, after: &Config, allow: &[String]) -> Result<Self> {
        let allow: Vec<&str> = allow.iter().map(|key| renamed::current(key)).collect();
        let (mut free, mut allowed, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        let differences = differences(before, after);
        for &key in &allow {
            // The content of a file can change without its path.
            let changed = |difference: &Difference| covers([key], &difference.key);
            if !differences.iter().any(changed) && !key.starts_with("data") {
                tracing::warn!("--allow {key}: it has not changed");
            }
        }
        for difference in differences {
            if covers(FREE, &difference.key) {
                tracing::info!("changed: {difference}");
                if difference.key == "train.steps" && after.train.schedule.kind.ends() {
                    tracing::warn!("with train.steps, the learning rate of every step changes");
                }
                free.push(difference);
            } else if covers(allow.iter().copied(), &difference.key) {
                tracing::warn!("changed, as allowed: {difference}");
                allowed.push(difference);
            } else {
                refused.push(difference);
            }
        }
        if !refused.is_empty() {
            return Err(Error::ConfigChanged {
                folder: after.out.clone(),
                differences: refused,
            });
        }
        Ok(Self { free, allowed })
    }

    /// Whether one of these keys, or a key below one of them, has changed.
    pub(crate) fn include(&self, keys: &[&str]) -> bool {
        let mut differences = self.free.iter().chain(&self.allowed);
        differences.any(|difference| covers(keys.iter().copied(), &difference.key))
    }

    /// Whether nothing has changed that needed `--allow`.
    pub(crate) fn are_free(&self) -> bool {
        self.allowed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Judge;
    use crate::{Metric, open};

    fn config(change: impl FnOnce(&mut Config)) -> Config {
        let text = "out = \"a\"\n[data]\nsource = \"en\"\ntarget = \"de\"\ntrain = \"x\"\n";
        let mut config: Config = toml::from_str(text).unwrap();
        change(&mut config);
        config
    }

    #[test]
    fn differences_name_every_key_that_changed_with_both_values() {
        let before = config(|_| ());
        let after = config(|config| {
            config.train.clip_norm = Some(1.0);
            config.train.adam.beta2 = 0.5;
            config.seed = 9;
        });
        let found: Vec<String> = differences(&before, &after)
            .iter()
            .map(Difference::to_string)
            .collect();
        assert_eq!(
            found,
            [
                "seed: 1 → 9",
                "train.adam.beta2: 0.98 → 0.5",
                "train.clip_norm: not set → 1.0",
            ]
        );
        assert!(differences(&before, &before).is_empty());
    }

    #[test]
    fn what_changes_learning_is_refused_unless_it_is_allowed_by_name() {
        let before = config(|_| ());
        let free = config(|config| {
            config.out = "b".into();
            config.train.steps = 7;
            config.decode.beam += 1;
        });
        assert!(Changes::check(&before, &free, &[]).is_ok());
        let other = config(|config| config.train.adam.beta2 = 0.5);
        let error = Changes::check(&before, &other, &[])
            .unwrap_err()
            .to_string();
        assert!(error.contains("train.adam.beta2: 0.98 → 0.5"), "{error}");
        for allowed in ["train.adam.beta2", "train.adam", "train"] {
            assert!(
                Changes::check(&before, &other, &[allowed.into()]).is_ok(),
                "{allowed}"
            );
        }
        for allowed in ["train.ada", "train.adam.beta1", "seed", ""] {
            assert!(
                Changes::check(&before, &other, &[allowed.into()]).is_err(),
                "{allowed}"
            );
        }
    }

    #[test]
    fn a_change_is_found_by_its_key_or_a_table_above_it() {
        let before = config(|_| ());
        let after = config(|config| {
            config.decode.beam += 1;
            config.train.clip_norm = Some(1.0);
        });
        let changes = Changes::check(&before, &after, &["train.clip_norm".into()]).unwrap();
        assert!(changes.include(&["decode"]) && changes.include(&["seed", "train.clip_norm"]));
        assert!(!changes.include(&["decode.length_penalty", "train.clip", "data"]));
        assert!(!changes.are_free());
        let same = Changes::check(&before, &before, &[]).unwrap();
        assert!(same.are_free() && !same.include(&["decode"]));
    }

    #[test]
    fn every_key_named_in_the_code_is_a_key_of_configs() {
        let full = config(|config| {
            let train = &mut config.train;
            (train.epochs, train.minutes, train.patience) = (Some(1), Some(1.0), Some(1));
            (config.data.cache, config.data.clean.same) = (Some("c".into()), true);
            config.data.augment.uppercase = 0.1;
            config.data.corpora = vec![Default::default()];
            (config.data.valid, config.data.test) = (
                Some(std::path::PathBuf::from("v").into()),
                Some(std::path::PathBuf::from("t").into()),
            );
        });
        let keys = flat(&full.to_full_toml());
        let metrics = [Metric::Loss, Metric::Bleu, Metric::Chrf];
        let judged = metrics.into_iter().flat_map(Judge::keys);
        let named = FREE.iter().chain(judged).chain(&open::BATCH_KEYS);
        for name in named.chain(&open::PAIR_KEYS) {
            assert!(keys.keys().any(|key| covers([*name], key)), "{name}");
        }
    }
}
