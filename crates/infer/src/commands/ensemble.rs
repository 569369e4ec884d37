use std::path::{Path, PathBuf};

use attend_cli::Bars;
use attend_infer::{Ensemble, Models, Result, hub};
use candle_core::Device;

/// Further models.
#[derive(Debug, clap::Args)]
pub(super) struct EnsembleArgs {
    /// A further model with the same tokenizer, whose probabilities are averaged with those of RUN;
    /// may be given several times
    #[arg(long = "ensemble", value_name = "RUN")]
    others: Vec<PathBuf>,
}

impl EnsembleArgs {
    /// Opens `run` and the further models.
    pub(super) fn open(&self, run: &Path, device: &Device) -> Result<Models> {
        let folders = std::iter::once(run).chain(self.others.iter().map(PathBuf::as_path));
        let folders = folders.map(|folder| hub::local(folder, &Bars));
        Ensemble::open(&folders.collect::<Result<Vec<_>>>()?, device)
    }
}
