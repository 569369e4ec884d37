//! Writing checkpoints. Reading them is `attend_infer::run`.

use std::collections::BTreeMap;

use attend_infer::run::{Checkpoint, Link, Provenance, RunFolder, TrainerState};
use candle_core::Tensor;

use crate::{Config, Result, storage};

/// The checkpoints of a run: writes `checkpoint-<step>/`, and keeps `last`, `best` and the number of
/// checkpoints up to date.
#[derive(Clone, Debug)]
pub(crate) struct Checkpoints {
    run: RunFolder,
}

/// What a checkpoint holds.
pub(crate) struct Content<'a> {
    pub(crate) state: &'a TrainerState,
    pub(crate) provenance: &'a Provenance,
    pub(crate) config: &'a Config,
    /// The files of the bundle.
    pub(crate) bundle: Vec<(String, Vec<u8>)>,
    pub(crate) optimizer: &'a BTreeMap<String, Tensor>,
}

impl Checkpoints {
    pub(crate) fn of(run: &RunFolder) -> Self {
        Self { run: run.clone() }
    }

    /// Writes a checkpoint: the files of a bundle, and what training needs to continue from it.
    pub(crate) fn write(&self, content: Content) -> Result<()> {
        let Content {
            state,
            provenance,
            config,
            bundle: mut files,
            optimizer,
        } = content;
        let tensors = safetensors::serialize(optimizer, None).map_err(candle_core::Error::from)?;
        let state_json = serde_json::to_vec_pretty(state).map_err(candle_core::Error::wrap)?;
        let provenance = serde_json::to_vec_pretty(provenance).map_err(candle_core::Error::wrap)?;
        let mut add = |name: &str, bytes| files.push((name.to_string(), bytes));
        add(Checkpoint::CONFIG, config.to_toml().into_bytes());
        add(Checkpoint::OPTIMIZER, tensors);
        add(Checkpoint::PROVENANCE, provenance);
        add(Checkpoint::STATE, state_json);
        storage::write_folder(&self.run.checkpoint_path(state.step), &files)
    }

    /// Points `last` to the checkpoint of this state, and `best` to the best.
    pub(crate) fn update_links(&self, state: &TrainerState) -> Result<()> {
        let update = |link: Link, step: u64| {
            let name = RunFolder::checkpoint_name(step);
            storage::update_link(&self.run.link_path(link), &name)
        };
        update(Link::Last, state.step)?;
        match state.best {
            Some(best) if self.run.checkpoint_path(best.step).exists() => {
                update(Link::Best, best.step)
            }
            _ => Ok(()),
        }
    }

    /// Removes the checkpoints before this state's, except for the newest and the one that `best`
    /// leads to. Those after it are damaged. They are kept for inspection until training reaches
    /// their step.
    pub(crate) fn remove_old(&self, state: &TrainerState, keep: usize) -> Result<()> {
        let mut steps = self.run.steps()?;
        steps.retain(|&step| step <= state.step);
        let best = self.run.linked_step(Link::Best);
        let best = [best, state.best.map(|best| best.step)];
        let old = steps.iter().rev().skip(keep.max(1));
        for &step in old.filter(|&&step| !best.contains(&Some(step))) {
            storage::remove_folder(&self.run.checkpoint_path(step))?;
        }
        Ok(())
    }
}

/// The config that a checkpoint was trained with.
pub(crate) fn config_of(checkpoint: &Checkpoint) -> Result<Config> {
    let path = checkpoint.folder.join(Checkpoint::CONFIG);
    Config::parse_run(checkpoint.config()?, &path.display().to_string())
}
