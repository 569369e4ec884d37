use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use attend_data::Tokenizers;
use attend_infer::run::RunFolder;
use attend_infer::{Bundle, BundleConfig, vocabularies};
use candle_core::{Device, Tensor};

use crate::{Config, Error, Result, storage};

/// A bundle of averaged parameters.
#[derive(Debug)]
pub struct Averaged {
    pub folder: PathBuf,
    /// The steps of the checkpoints that were averaged.
    pub steps: Vec<u64>,
}

/// Averages the parameters of a run's last checkpoints (Vaswani et al. 2017, §6.1) into a bundle,
/// `averaged` in the run's folder unless `out` says otherwise; returns where it is, and the steps.
pub fn average(folder: &Path, last: usize, out: Option<PathBuf>) -> Result<Averaged> {
    let run = RunFolder::new(folder);
    let mut steps = run.steps()?;
    steps.retain(|&step| step > 0); // step 0 is untrained
    if steps.is_empty() {
        return Err(Error::no_checkpoint(folder));
    }
    if steps.len() < last {
        return Err(Error::FewCheckpoints {
            folder: folder.to_path_buf(),
            found: steps.len(),
            asked: last,
        });
    }
    let config = Config::read_run(&run.config_path(), &[])?;
    let out = out.unwrap_or_else(|| folder.join("averaged"));
    storage::check_replaceable(&out)?;
    let steps = steps.split_off(steps.len() - last);
    let mut sums: BTreeMap<String, Tensor> = BTreeMap::new();
    let mut tokenizers = None;
    for &step in &steps {
        let checkpoint = run.checkpoint(step)?;
        for (name, tensor) in checkpoint.parameters(&Device::Cpu)? {
            let sum = match sums.get(&name) {
                Some(sum) => (sum + tensor)?,
                None => tensor,
            };
            sums.insert(name, sum);
        }
        tokenizers = Some(Tokenizers::load(&checkpoint.folder)?);
    }
    for sum in sums.values_mut() {
        *sum = (&*sum / last as f64)?;
    }
    let tokenizers = tokenizers.ok_or_else(|| Error::no_checkpoint(folder))?;
    let bundle = BundleConfig::new(
        config.model,
        vocabularies(&tokenizers),
        config.data.max_length,
    );
    let files = Bundle::files(&bundle, &tokenizers, &config.decode, &sums)?;
    storage::write_folder(&out, &files)?;
    Ok(Averaged { folder: out, steps })
}
