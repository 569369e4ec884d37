//! How two configs differ, and which differences a run may take up on its way.

use std::collections::BTreeMap;
use std::fmt;

use crate::{Config, Error, Result};

/// A key with another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Such as `train.schedule.warmup`.
    pub key: String,
    /// `None` where there was none.
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

/// Keys that may change on the way, with all that is below them: they say when to stop, look and
/// speak, or where files are whose content is checked. All others change how it is learnt.
const FREE: [&str; 17] = [
    "out",
    "decode",
    "data.train",
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
    "train.on_save_error",
    "train.max_skipped",
    "train.spike",
];

/// All keys in which two configs differ, by name.
pub fn differences(before: &Config, after: &Config) -> Vec<Difference> {
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

fn flat(config: &Config) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    let table = config.to_toml().parse();
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

/// Whether one of `keys` is this key, or a table that holds it.
pub(crate) fn covers<'a>(keys: impl IntoIterator<Item = &'a str>, key: &str) -> bool {
    keys.into_iter().any(|allowed| {
        let below = key.strip_prefix(allowed);
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// Refuses what may not change between a checkpoint and the config that is to carry it on, except
/// what was allowed by name; gives what was.
pub(crate) fn check(
    before: &Config,
    after: &Config,
    allowed: &[String],
) -> Result<Vec<Difference>> {
    let (mut refused, mut taken) = (Vec::new(), Vec::new());
    let differences = differences(before, after);
    for key in allowed {
        // Data can change though its path does not.
        if !differences.iter().any(|d| covers([key.as_str()], &d.key)) && !key.starts_with("data") {
            tracing::warn!("--allow {key}: it has not changed");
        }
    }
    for difference in differences {
        if covers(FREE, &difference.key) {
            tracing::info!("changed: {difference}");
            let kind = after.train.schedule.kind;
            if difference.key == "train.steps" && kind.ends() {
                tracing::warn!("with train.steps, the learning rate of every step changes");
            }
        } else if covers(allowed.iter().map(String::as_str), &difference.key) {
            tracing::warn!("changed, as allowed: {difference}");
            taken.push(difference);
        } else {
            refused.push(difference);
        }
    }
    match refused.is_empty() {
        true => Ok(taken),
        false => Err(Error::ConfigChanged {
            folder: after.out.clone(),
            differences: refused,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(check(&before, &free, &[]).is_ok());
        let other = config(|config| config.train.adam.beta2 = 0.5);
        let error = check(&before, &other, &[]).unwrap_err().to_string();
        assert!(error.contains("train.adam.beta2: 0.98 → 0.5"), "{error}");
        for allowed in ["train.adam.beta2", "train.adam", "train"] {
            assert!(
                check(&before, &other, &[allowed.into()]).is_ok(),
                "{allowed}"
            );
        }
        for allowed in ["train.ada", "train.adam.beta1", "seed", ""] {
            assert!(
                check(&before, &other, &[allowed.into()]).is_err(),
                "{allowed}"
            );
        }
    }

    #[test]
    fn every_free_key_is_a_key_of_configs() {
        let full = config(|config| {
            let train = &mut config.train;
            (train.epochs, train.minutes, train.patience) = (Some(1), Some(1.0), Some(1));
            (config.data.valid, config.data.test) = (
                Some(std::path::PathBuf::from("v").into()),
                Some(std::path::PathBuf::from("t").into()),
            );
        });
        let keys = flat(&full);
        for free in FREE {
            assert!(keys.keys().any(|key| covers([free], key)), "{free}");
        }
    }
}
