use std::path::{Path, PathBuf};

use attend_cli::Bars;
use attend_infer::{Ensemble, Models, Quantization, Result, hub};
use attend_model::{Kernels, Packing};
use candle_core::Device;

/// Which models are opened beside RUN, and how.
#[derive(Debug, clap::Args)]
pub(super) struct ModelArgs {
    /// A further model with the same tokenizer, whose probabilities are averaged with those of RUN;
    /// may be given several times
    #[arg(long = "ensemble", value_name = "RUN")]
    others: Vec<PathBuf>,

    /// Compute with weights in 8 bits, which is faster on the CPU and changes some translations slightly.
    /// `infer quantize` writes a model whose weights are so
    #[arg(long, value_name = "int8", value_enum, hide_possible_values = true)]
    quantize: Option<Quantization>,
}

impl ModelArgs {
    /// Opens `run` and the further models.
    pub(super) fn open(&self, run: &Path, device: &Device, kernels: Kernels) -> Result<Models> {
        let folders = std::iter::once(run).chain(self.others.iter().map(PathBuf::as_path));
        let folders = folders.map(|folder| hub::local(folder, &Bars));
        let folders = folders.collect::<Result<Vec<_>>>()?;
        let packing = match self.quantize {
            None => Packing::Float,
            Some(Quantization::Int8) => Packing::Int8,
        };
        Ensemble::open(&folders, device, kernels, packing)
    }
}
