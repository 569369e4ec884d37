use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use attend_data::Tokenizers;
use attend_infer::Bundle;
use candle_core::{Device, Tensor};

use crate::checkpoint::Checkpoints;
use crate::{Config, Error, Result, storage};

/// Averages the parameters of a run's last checkpoints (Vaswani et al. 2017, §6.1) into a bundle,
/// `averaged` in the run's folder unless `out` says otherwise; returns where it is, and the steps.
pub fn average(folder: &Path, last: usize, out: Option<PathBuf>) -> Result<(PathBuf, Vec<u64>)> {
    let checkpoints = Checkpoints::of(folder);
    let mut steps = checkpoints.steps()?;
    steps.retain(|&step| step > 0); // the first has not learnt anything
    if steps.is_empty() {
        return Err(Error::NoCheckpoint(folder.to_path_buf()));
    }
    if steps.len() < last {
        return Err(Error::FewCheckpoints {
            folder: folder.to_path_buf(),
            found: steps.len(),
            asked: last,
        });
    }
    let config = Config::read(&folder.join("config.toml"), &[])?;
    let out = out.unwrap_or_else(|| folder.join("averaged"));
    storage::check_replaceable(&out)?;
    let steps = steps.split_off(steps.len() - last);
    let mut sums: BTreeMap<String, Tensor> = BTreeMap::new();
    let mut tokenizers = None;
    for &step in &steps {
        let checkpoint = checkpoints.read(step)?;
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
    let tokenizers = tokenizers.ok_or_else(|| Error::NoCheckpoint(folder.to_path_buf()))?;
    let vocabularies = crate::open::vocabularies(&tokenizers);
    let files = Bundle::files(
        &config.model,
        vocabularies,
        &tokenizers,
        &config.decode,
        &sums,
    )?;
    storage::write_folder(&out, &files)?;
    Ok((out, steps))
}
