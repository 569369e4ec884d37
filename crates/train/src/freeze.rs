use std::collections::BTreeSet;

use attend_config::ConfigError;

/// Which weights are not trained: patterns of their names (`train.freeze`).
#[derive(Clone, Debug)]
pub(crate) struct Freeze<'a>(&'a [String]);

impl<'a> Freeze<'a> {
    pub(crate) fn new(patterns: &'a [String]) -> Self {
        Self(patterns)
    }

    /// Whether a weight is frozen.
    pub(crate) fn covers(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| is_match(pattern, name))
    }

    /// An error if a pattern is of no weight, or if nothing would be trained.
    pub(crate) fn check<'n>(
        &self,
        names: impl Iterator<Item = &'n str> + Clone,
    ) -> Result<(), ConfigError> {
        let key = "train.freeze";
        for pattern in self.0 {
            if !names.clone().any(|name| is_match(pattern, name)) {
                let parts: BTreeSet<String> = names.clone().map(without_layer).collect();
                let parts: Vec<String> = parts.into_iter().collect();
                let hint = format!(
                    "`*` stands for any characters; the weights are {}",
                    parts.join(", ")
                );
                let message = format!("\"{pattern}\" is of no weight of the model");
                return Err(ConfigError::new(key, message, hint));
            }
        }
        if !self.0.is_empty() && names.clone().all(|name| self.covers(name)) {
            let hint = "leave out a pattern";
            return Err(ConfigError::new(key, "leaves no weight to train", hint));
        }
        Ok(())
    }
}

/// The name of a weight without the numbers of layers: `model.encoder.layers.*.fc1.weight`.
pub(crate) fn without_layer(name: &str) -> String {
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let parts = name.split('.');
    let parts: Vec<&str> = parts
        .map(|part| if is_number(part) { "*" } else { part })
        .collect();
    parts.join(".")
}

/// Whether a pattern is of a name, with or without its `model.`.
fn is_match(pattern: &str, name: &str) -> bool {
    let short = name.strip_prefix("model.");
    glob(pattern, name) || short.is_some_and(|name| glob(pattern, name))
}

/// Whether a text is a pattern in which each `*` stands for any characters.
fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty(); // a pattern without `*`
    };
    for part in parts {
        match rest.find(part) {
            Some(place) => rest = &rest[place + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 5] = [
        "lm_head.weight",
        "model.decoder.layers.0.fc1.weight",
        "model.encoder.embed_tokens.weight",
        "model.encoder.layers.0.fc1.weight",
        "model.encoder.layers.10.fc1.bias",
    ];

    fn frozen(patterns: &[&str]) -> Vec<usize> {
        let patterns: Vec<String> = patterns.iter().map(|p| p.to_string()).collect();
        let freeze = Freeze::new(&patterns);
        (0..NAMES.len())
            .filter(|&i| freeze.covers(NAMES[i]))
            .collect()
    }

    #[test]
    fn a_pattern_is_of_whole_names_with_or_without_the_prefix_model() {
        assert!(frozen(&[]).is_empty());
        assert_eq!(frozen(&["encoder.*"]), [2, 3, 4]);
        assert_eq!(frozen(&["model.encoder.*"]), [2, 3, 4]);
        assert_eq!(frozen(&["*.fc1.*"]), [1, 3, 4]);
        assert_eq!(frozen(&["*coder.layers.*.weight"]), [1, 3]);
        assert!(frozen(&["encoder", "fc1", "weight"]).is_empty());
        assert_eq!(frozen(&["lm_head.weight", "encoder.layers.10.*"]), [0, 4]);
        assert_eq!(frozen(&["*"]), [0, 1, 2, 3, 4]);
        assert_eq!(frozen(&["*a*a*", "**"]), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_pattern_of_no_weight_and_freezing_everything_are_errors() {
        let check = |patterns: &[&str]| {
            let patterns: Vec<String> = patterns.iter().map(|p| p.to_string()).collect();
            let checked = Freeze::new(&patterns).check(NAMES.into_iter());
            checked.map_err(|error| (error.message, error.hint))
        };
        assert_eq!(check(&[]), Ok(()));
        assert_eq!(check(&["encoder.*", "decoder.*"]), Ok(()));
        let (message, hint) = check(&["encoder.*", "encodr.*"]).unwrap_err();
        assert!(message.contains("\"encodr.*\""), "{message}");
        assert!(hint.contains("model.encoder.layers.*.fc1.bias"), "{hint}");
        let (message, _) = check(&["lm_head*", "model.*"]).unwrap_err();
        assert!(message.contains("no weight to train"), "{message}");
    }
}
