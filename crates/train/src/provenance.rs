use std::collections::BTreeMap;

use attend_data::{Dataset, Tokenizers};
use attend_infer::sha256;
use attend_model::Path;
use candle_core::Device;
use serde::{Deserialize, Serialize};

use crate::Config;

/// What a checkpoint was made from and by: what must be the same for two runs to be the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Name and version of the program.
    pub program: String,
    /// The machine that it was built for.
    pub target: String,
    /// The kind of device, and the path of its operations.
    pub computed: String,
    /// SHA-256 of the config, but for the name of the run's folder.
    pub config: String,
    /// A hash of the training data, as tokens.
    pub data: String,
    /// The same of the validation data, if there is any.
    pub validation: Option<String>,
    /// SHA-256 of each tokenizer.
    pub tokenizers: BTreeMap<String, String>,
}

impl Provenance {
    pub(crate) fn new(
        config: &Config,
        tokenizers: &Tokenizers,
        training: &Dataset,
        validation: Option<&Dataset>,
        (device, path): (&Device, Path),
    ) -> Self {
        let device = match device {
            Device::Cpu => "CPU",
            Device::Cuda(_) => "CUDA",
            Device::Metal(_) => "Metal",
        };
        let data = |dataset: &Dataset| format!("{:016x}", dataset.fingerprint());
        let tokenizers = match tokenizers {
            Tokenizers::Joint(both) => vec![("joint", both)],
            Tokenizers::Separate { source, target } => {
                vec![("source", source), ("target", target)]
            }
        };
        let tokenizers = tokenizers.into_iter().map(|(name, tokenizer)| {
            let hash = sha256(tokenizer.to_json().as_bytes());
            (name.to_string(), hash)
        });
        Self {
            program: concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION")).to_string(),
            target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
            computed: format!("{device}, {path:?}"),
            config: sha256(anywhere(config).to_toml().as_bytes()),
            data: data(training),
            validation: validation.map(data),
            tokenizers: tokenizers.collect(),
        }
    }

    /// Each of its parts by name, for comparing.
    pub(crate) fn parts(&self) -> Vec<(String, String)> {
        let none = || "none".to_string();
        let mut parts = vec![
            ("program".to_string(), self.program.clone()),
            ("machine".to_string(), self.target.clone()),
            ("way of computing".to_string(), self.computed.clone()),
            ("config".to_string(), self.config.clone()),
            ("training data".to_string(), self.data.clone()),
            (
                "validation data".to_string(),
                self.validation.clone().unwrap_or_else(none),
            ),
        ];
        let tokenizers = self.tokenizers.iter();
        parts.extend(tokenizers.map(|(side, hash)| (format!("{side} tokenizer"), hash.clone())));
        parts
    }
}

/// A config without the folder that its run writes, which may be moved.
fn anywhere(config: &Config) -> Config {
    Config {
        out: "run".into(),
        ..config.clone()
    }
}
