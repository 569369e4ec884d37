use std::collections::BTreeMap;

use attend_data::Counts;
use serde::{Deserialize, Serialize};

/// `provenance.json`: what a checkpoint was made from, and by which program. Two runs whose
/// provenance is the same end with the same bits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Name and version of the program.
    pub program: String,
    /// The machine that the program was built for.
    pub target: String,
    /// The kind of device, and which kernels compute.
    pub computed: String,
    /// The version of the fused kernels; `none` if the composed ones compute, `unknown` in older checkpoints.
    #[serde(default = "unknown")]
    pub isa: String,
    /// How many processes trained together.
    #[serde(default = "one")]
    pub ranks: usize,
    /// SHA-256 of the config, except for the path of the run's folder.
    pub config: String,
    /// A hash of the training data, as tokens, and of how it is mixed.
    pub data: String,
    /// The corpora of the training data. Empty in older checkpoints.
    #[serde(default)]
    pub corpora: Vec<CorpusProvenance>,
    /// The same of the validation data, if there is any.
    pub validation: Option<String>,
    /// SHA-256 of each tokenizer.
    pub tokenizers: BTreeMap<String, String>,
}

/// One corpus of the training data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorpusProvenance {
    /// Its files, as a message names them.
    pub name: String,
    /// A hash of its tokens.
    pub data: String,
    /// How many pairs were read, kept, and dropped for each reason.
    pub pairs: Counts,
}

/// The value of what an older program did not record.
const UNKNOWN: &str = "unknown";

fn one() -> usize {
    1
}

fn unknown() -> String {
    UNKNOWN.to_string()
}

impl Provenance {
    /// Whether the version of the kernels was recorded.
    pub fn knows_isa(&self) -> bool {
        self.isa != UNKNOWN
    }

    /// Whether the batches of this version of the program come in the order of those that trained the checkpoint.
    /// Older programs had another order, and 16 digits for the hash of the data.
    pub fn knows_order(&self) -> bool {
        self.data.len() > 16
    }

    /// Every entry with its name, for comparing two runs.
    pub fn entries(&self) -> Vec<(String, String)> {
        let validation = self.validation.as_deref().unwrap_or("none");
        let ranks = self.ranks.to_string();
        let entries = [
            ("program", self.program.as_str()),
            ("machine", &self.target),
            ("device and kernels", &self.computed),
            ("version of the kernels", &self.isa),
            ("ranks", &ranks),
            ("config", &self.config),
            ("training data", &self.data),
            ("validation data", validation),
        ];
        let entries = entries
            .into_iter()
            .map(|(name, value)| (name.to_string(), value.to_string()));
        let tokenizers = self.tokenizers.iter();
        let tokenizers = tokenizers.map(|(side, hash)| (format!("{side} tokenizer"), hash.clone()));
        entries.chain(tokenizers).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_without_the_version_of_the_kernels_still_loads() {
        let old = r#"{"program":"p","target":"t","computed":"c","config":"","data":"","validation":null,
            "tokenizers":{}}"#;
        let provenance: Provenance = serde_json::from_str(old).unwrap();
        assert!(!provenance.knows_isa());
    }
}
