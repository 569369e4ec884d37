use attend_data::{Dataset, Mixture, Tokenizers};
use attend_infer::run::{CorpusProvenance, Provenance};
use attend_infer::sha256;
use attend_ops::{Isa, Kernels};
use candle_core::Device;

use crate::{Compute, Config};

/// What a run of this config is made from.
pub(crate) fn provenance(
    config: &Config,
    tokenizers: &Tokenizers,
    training: &Mixture,
    corpora: Vec<CorpusProvenance>,
    validation: Option<&Dataset>,
    compute: &Compute,
) -> Provenance {
    let device = match compute.device {
        Device::Cpu => "CPU",
        Device::Cuda(_) => "CUDA",
        Device::Metal(_) => "Metal",
    };
    let tokenizers = match tokenizers {
        Tokenizers::Joint(both) => vec![("joint", both)],
        Tokenizers::Shared { source, target } | Tokenizers::Separate { source, target } => {
            vec![("source", source), ("target", target)]
        }
        Tokenizers::TargetOnly(target) => vec![("target", target)],
    };
    let tokenizers = tokenizers.into_iter().map(|(name, tokenizer)| {
        let hash = sha256(&tokenizer.content());
        (name.to_string(), hash)
    });
    Provenance {
        program: concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION")).to_string(),
        target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        computed: format!("{device}, {:?}", compute.kernels),
        isa: match compute.kernels {
            Kernels::Fused => Isa::current().to_string(),
            Kernels::Composed => "none".to_string(),
        },
        ranks: compute.comm.size(),
        config: sha256(anywhere(config).to_toml().as_bytes()),
        data: training.fingerprint(),
        corpora,
        validation: validation.map(|dataset| dataset.fingerprint().to_string()),
        tokenizers: tokenizers.collect(),
    }
}

/// A config without the folder that its run writes, which may be moved.
fn anywhere(config: &Config) -> Config {
    Config {
        out: "run".into(),
        ..config.clone()
    }
}
