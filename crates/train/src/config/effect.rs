use attend_data::TokenizerKind;

use super::Config;
use super::document::{Document, Written};
use super::overrides::Override;
use crate::drift::covers;
use crate::toml_error::Place;
use crate::{Error, Result};

/// A key that has an effect only with certain values of other keys.
struct Conditional {
    key: &'static str,
    has_effect: fn(&Config) -> bool,
    /// What it belongs to, for the hint.
    belongs_to: &'static str,
}

const TRAINED: &str = "tokenizers that are trained, and train.init or data.tokenizer.file is set";

/// Every conditional key; one with two conditions is here twice. Keys that are refused by the model's own
/// check, such as `model.recurrent.attention.window`, are not here.
const CONDITIONAL: [Conditional; 13] = [
    Conditional {
        key: "data.tokenizer.kind",
        has_effect: trains_tokenizers,
        belongs_to: TRAINED,
    },
    Conditional {
        key: "data.tokenizer.vocab_size",
        has_effect: trains_tokenizers,
        belongs_to: TRAINED,
    },
    Conditional {
        key: "data.tokenizer.joint",
        has_effect: trains_tokenizers,
        belongs_to: TRAINED,
    },
    Conditional {
        key: "data.tokenizer.joint",
        has_effect: |config| config.data.source_kind.is_text(),
        belongs_to: "data.source_kind = \"text\"",
    },
    Conditional {
        key: "data.tokenizer.min_frequency",
        has_effect: trains_tokenizers,
        belongs_to: TRAINED,
    },
    Conditional {
        key: "data.tokenizer.min_frequency",
        has_effect: |config| config.data.tokenizer.kind != TokenizerKind::Unigram,
        belongs_to: "kind = \"bpe\", \"word\" or \"char\"",
    },
    Conditional {
        key: "data.tokenizer.lowercase",
        has_effect: trains_tokenizers,
        belongs_to: TRAINED,
    },
    Conditional {
        key: "data.tokenizer.split_punctuation",
        has_effect: trains_tokenizers,
        belongs_to: TRAINED,
    },
    Conditional {
        key: "data.tokenizer.split_punctuation",
        has_effect: |config| {
            let kind = config.data.tokenizer.kind;
            matches!(kind, TokenizerKind::Bpe | TokenizerKind::Unigram)
        },
        belongs_to: "kind = \"bpe\" or \"unigram\"",
    },
    Conditional {
        key: "data.tokenizer.byte_fallback",
        has_effect: trains_tokenizers,
        belongs_to: TRAINED,
    },
    Conditional {
        key: "data.tokenizer.byte_fallback",
        has_effect: |config| config.data.tokenizer.kind == TokenizerKind::Bpe,
        belongs_to: "kind = \"bpe\"",
    },
    Conditional {
        key: "data.tokenizer.sample",
        has_effect: trains_tokenizers,
        belongs_to: TRAINED,
    },
    Conditional {
        key: "train.schedule.minimum",
        has_effect: |config| config.train.schedule.kind.ends(),
        belongs_to: "kind = \"linear\" or \"cosine\"",
    },
];

fn trains_tokenizers(config: &Config) -> bool {
    config.data.tokenizer.file.is_none() && config.train.init.is_none()
}

/// Refuses a key that is written but has no effect.
pub(super) fn check(config: &Config, file: &Document, overrides: &[Override]) -> Result<()> {
    let replaced = |key: &str| overrides.iter().any(|given| covers([&*given.key], key));
    for Written { key, span } in file.keys() {
        let Some(row) = without_effect(config, &key).filter(|_| !replaced(&key)) else {
            continue;
        };
        let mut hint = format!("leave it out: it belongs to {}", row.belongs_to);
        if !overrides.is_empty() {
            let table = key.rsplit_once('.').map_or("", |(table, _)| table);
            hint += &format!("; or replace the whole table: --set '{table}={{ … }}'");
        }
        return Err(refusal(file.place_of(span.start), &key, hint));
    }
    for given in overrides {
        let document = given.document()?;
        for Written { key, span } in document.keys() {
            if let Some(row) = without_effect(config, &key) {
                let hint = format!("leave it out: it belongs to {}", row.belongs_to);
                return Err(refusal(document.place_of(span.start), &key, hint));
            }
        }
    }
    Ok(())
}

fn refusal(place: String, key: &str, hint: String) -> Error {
    Error::Config {
        place,
        message: format!("`{key}` has no effect here"),
        hint: Some(hint),
    }
}

/// The condition that this key does not meet, if any.
fn without_effect(config: &Config, key: &str) -> Option<&'static Conditional> {
    let mut rows = CONDITIONAL.iter();
    rows.find(|row| row.key == key && !(row.has_effect)(config))
}

/// Cuts the keys that have no effect out of the config's TOML.
pub(super) fn remove_unused(config: &Config, toml: &str) -> String {
    let document = Document::parse(toml, Place::File("config.toml"));
    let keys = document.map(|document| document.keys()).unwrap_or_default();
    let mut kept = String::with_capacity(toml.len());
    let mut end = 0; // of the last key that was cut out
    for Written { key, span } in keys {
        if without_effect(config, &key).is_some() {
            let start = toml[..span.start]
                .rfind('\n')
                .map_or(0, |before| before + 1);
            kept += &toml[end..start];
            end = toml[span.end..]
                .find('\n')
                .map_or(toml.len(), |line| span.end + line + 1);
        }
    }
    kept + &toml[end..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(tokenizer: &str, schedule: &str) -> Config {
        let text = format!(
            "out = \"run\"\n\
             data = {{ source = \"a\", target = \"b\", train = \"t\", tokenizer = {{ {tokenizer} }} }}\n\
             train = {{ schedule = {{ {schedule} }} }}\n"
        );
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn each_condition_is_met_by_some_config_and_not_by_another() {
        let configs = [
            config("", "kind = \"linear\""),
            config("kind = \"unigram\"", ""),
            config("kind = \"word\"", ""),
            config("file = \"t.json\"", "kind = \"constant\""),
            Config {
                data: attend_data::DataConfig {
                    source_kind: attend_data::SourceKind::Pictures,
                    ..config("", "").data
                },
                ..config("", "")
            },
        ];
        for row in &CONDITIONAL {
            assert!(configs.iter().any(row.has_effect), "{}", row.key);
            assert!(!configs.iter().all(row.has_effect), "{}", row.key);
        }
    }

    #[test]
    fn each_conditional_key_is_a_key_of_configs() {
        let toml = config("", "").to_full_toml();
        let document = Document::parse(&toml, Place::File("config.toml")).unwrap();
        for row in &CONDITIONAL {
            let keys = document.keys();
            assert!(
                keys.iter().any(|written| written.key == row.key),
                "{}",
                row.key
            );
        }
    }

    #[test]
    fn keys_without_effect_are_left_out_of_the_toml_and_nothing_else_is() {
        let full = config("", "kind = \"cosine\"");
        assert_eq!(full.to_toml(), full.to_full_toml());
        let noam = config("", "");
        assert_eq!(
            noam.to_toml(),
            noam.to_full_toml().replace("minimum = 0.0\n", "")
        );
        let given = config("file = { source = \"s.json\", target = \"t.json\" }", "");
        let toml = given.to_toml();
        for key in [
            "kind = \"bpe\"",
            "vocab_size",
            "joint",
            "min_frequency",
            "lowercase",
            "split_punctuation",
            "byte_fallback",
            "\nsample = ",
            "minimum",
        ] {
            assert!(!toml.contains(key), "{key}: {toml}");
        }
        assert!(
            toml.contains("[data.tokenizer.file]\nsource = \"s.json\""),
            "{toml}"
        );
        assert_eq!(toml::from_str::<Config>(&toml).unwrap(), given);
        let unigram = config("kind = \"unigram\"", "").to_toml();
        assert!(unigram.contains("vocab_size") && unigram.contains("\nsample = "));
        assert!(!unigram.contains("min_frequency") && !unigram.contains("byte_fallback"));
    }
}
