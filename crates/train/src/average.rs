use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use attend_data::Tokenizers;
use attend_infer::run::{Event, RunFolder};
use attend_infer::{Bundle, BundleConfig, vocabularies};
use candle_core::{Device, Tensor};

use crate::compute::Compute;
use crate::corpora::Corpora;
use crate::validate::Validator;
use crate::{Config, Error, Result, Stop, storage};

/// Which checkpoints of a run are averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// The last so many.
    Last(usize),
    /// Those so many whose validations are the best by `train.metric`.
    Best(usize),
}

/// A bundle of averaged parameters.
#[derive(Debug)]
pub struct Averaged {
    pub folder: PathBuf,
    /// The steps of the checkpoints that were averaged.
    pub steps: Vec<u64>,
    /// What was tried, if the number of checkpoints was chosen on validation data: how many, and the validation in words.
    pub trials: Vec<(usize, String)>,
}

/// Averages the parameters of checkpoints (Vaswani et al. 2017, §6.1) into a bundle, `averaged` in the run's folder
/// unless `out` says otherwise.
///
/// With `choose`, so many checkpoints and all smaller numbers of them are validated, and the best number is taken.
pub fn average(
    folder: &Path,
    selection: Selection,
    choose: Option<&Compute>,
    out: Option<PathBuf>,
) -> Result<Averaged> {
    let run = RunFolder::new(folder);
    let config = Config::read_run(&run.config_path(), &[])?;
    let steps = selection.steps(&run, &config)?;
    let out = out.unwrap_or_else(|| folder.join("averaged"));
    storage::check_replaceable(&out)?;
    let newest = steps.iter().max().copied().unwrap_or_default();
    let tokenizers = Arc::new(Tokenizers::load(&run.checkpoint(newest)?.folder)?);
    let validator = choose
        .map(|_| validator(&config, &tokenizers))
        .transpose()?;
    let mut mean = Mean::default();
    let mut best: Option<(f64, usize, BTreeMap<String, Tensor>)> = None;
    let mut trials = Vec::new();
    for (count, &step) in (1..).zip(&steps) {
        mean.add(run.checkpoint(step)?.parameters(&Device::Cpu)?)?;
        let Some((compute, validator)) = choose.zip(validator.as_ref()) else {
            continue;
        };
        let tensors = mean.tensors()?;
        let mut load = |name: &str| match tensors.get(name) {
            Some(tensor) => tensor.to_device(&compute.device),
            None => candle_core::bail!("the checkpoints lack {name}"),
        };
        let vocabularies = vocabularies(&tokenizers);
        let model = config
            .model
            .load(vocabularies, &compute.device, &mut load)?;
        let validation = validator.validate(&*model, step, compute, &Stop::default())?;
        let validation = validation.ok_or(Error::Interrupted)?;
        let value = config.train.metric.value(&validation);
        trials.push((count, config.train.metric.describe(value)));
        if best.as_ref().is_none_or(|(best, ..)| value > *best) {
            best = Some((value, count, tensors));
        }
    }
    let (count, tensors) = match best {
        Some((_, count, tensors)) => (count, tensors),
        None => (steps.len(), mean.tensors()?),
    };
    let bundle = BundleConfig::new(
        config.model,
        vocabularies(&tokenizers),
        config.data.max_length,
    );
    let files = Bundle::files(&bundle, &tokenizers, &config.decode, &tensors)?;
    storage::write_folder(&out, &files)?;
    let mut steps = steps[..count].to_vec();
    steps.sort_unstable();
    Ok(Averaged {
        folder: out,
        steps,
        trials,
    })
}

impl Selection {
    /// The steps of these checkpoints: the last first, or the best first.
    fn steps(self, run: &RunFolder, config: &Config) -> Result<Vec<u64>> {
        let mut steps = run.steps()?;
        steps.retain(|&step| step > 0); // step 0 is untrained
        if steps.is_empty() {
            return Err(Error::no_checkpoint(run.path()));
        }
        steps.reverse();
        let folder = run.path().to_path_buf();
        let (Selection::Last(asked) | Selection::Best(asked)) = self;
        let found = steps.len();
        if found < asked {
            return Err(Error::FewCheckpoints {
                folder,
                found,
                asked,
            });
        }
        if let Selection::Best(_) = self {
            let values = validations(run, config)?;
            steps.retain(|step| values.contains_key(step));
            steps.sort_by(|a, b| values[b].total_cmp(&values[a]));
            let validated = steps.len();
            if validated < asked {
                return Err(Error::FewValidated {
                    folder,
                    found,
                    validated,
                });
            }
        }
        steps.truncate(asked);
        Ok(steps)
    }
}

/// How good the validations of a run were, by step. The higher, the better.
fn validations(run: &RunFolder, config: &Config) -> Result<HashMap<u64, f64>> {
    let log = run.event_log()?.unwrap_or_default();
    let values = log.events().filter_map(|event| match event {
        Event::Validation(validation) => {
            Some((validation.step, config.train.metric.value(&validation)))
        }
        _ => None,
    });
    Ok(values.filter(|(_, value)| value.is_finite()).collect())
}

fn validator(config: &Config, tokenizers: &Arc<Tokenizers>) -> Result<Validator> {
    let data = Corpora::find(config)?.validation(tokenizers)?;
    let data = data.ok_or_else(|| Error::NoValidation(config.out.clone()))?;
    Validator::new(data, tokenizers.clone(), config)
}

/// The mean of the parameters of checkpoints.
#[derive(Default)]
struct Mean {
    sums: BTreeMap<String, Tensor>,
    count: usize,
}

impl Mean {
    fn add(&mut self, parameters: HashMap<String, Tensor>) -> Result<()> {
        for (name, tensor) in parameters {
            let sum = match self.sums.get(&name) {
                Some(sum) => (sum + tensor)?,
                None => tensor,
            };
            self.sums.insert(name, sum);
        }
        self.count += 1;
        Ok(())
    }

    fn tensors(&self) -> Result<BTreeMap<String, Tensor>> {
        let means = self.sums.iter().map(|(name, sum)| {
            let mean = (sum / self.count as f64)?;
            Ok((name.clone(), mean))
        });
        means.collect()
    }
}
