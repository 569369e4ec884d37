use std::collections::BTreeMap;
use std::sync::Arc;

use attend_data::Tokenizers;
use attend_infer::run::{Provenance, RunFolder, TrainerState};
use attend_infer::{Bundle, BundleConfig, vocabularies};
use attend_ops::{norm_of_all, profile};
use candle_core::Tensor;

use crate::checkpoint::{Checkpoints, Content};
use crate::compute::Compute;
use crate::config::{Config, OnSaveError};
use crate::log::Log;
use crate::optimizer::Optimizer;
use crate::storage::{self, Lock};
use crate::{Error, Result, ranks};

/// Writes a run's checkpoints and its config. It holds the lock of the run's folder.
pub(crate) struct Saver {
    folder: RunFolder,
    checkpoints: Checkpoints,
    tokenizers: Arc<Tokenizers>,
    provenance: Provenance,
    keep: usize,
    on_error: OnSaveError,
    /// The step of the last checkpoint.
    saved: Option<u64>,
    /// Held by the rank that writes. The others only take part in gathering what is written.
    lock: Option<Lock>,
}

/// What a checkpoint is made from.
pub(crate) struct Snapshot<'a> {
    pub(crate) config: &'a Config,
    pub(crate) state: &'a TrainerState,
    pub(crate) optimizer: &'a Optimizer,
    pub(crate) compute: &'a Compute,
}

impl Saver {
    pub(crate) fn new(
        config: &Config,
        tokenizers: Arc<Tokenizers>,
        provenance: Provenance,
        lock: Option<Lock>,
    ) -> Self {
        let folder = RunFolder::new(&config.out);
        Self {
            checkpoints: Checkpoints::of(&folder),
            folder,
            tokenizers,
            provenance,
            keep: config.train.keep,
            on_error: config.train.on_save_error,
            saved: None,
            lock,
        }
    }

    pub(crate) fn folder(&self) -> &RunFolder {
        &self.folder
    }

    /// The step of the last checkpoint.
    pub(crate) fn saved(&self) -> Option<u64> {
        self.saved
    }

    /// The next save is done, even if the step has a checkpoint.
    pub(crate) fn forget_last(&mut self) {
        self.saved = None;
    }

    /// An error if the run's folder is no longer there.
    pub(crate) fn check_folder(&self) -> Result<()> {
        let lock = self.lock.as_ref();
        lock.map_or(Ok(()), |lock| lock.check(&self.folder))
    }

    /// Writes a checkpoint of this step, once. Parameters that are not finite are an error.
    pub(crate) fn save(&mut self, snapshot: &Snapshot, log: &mut Log) -> Result<()> {
        let step = snapshot.state.step;
        if self.saved == Some(step) {
            return Ok(());
        }
        let moments = snapshot.optimizer.state()?;
        let written = match self.lock {
            Some(_) => self.write(snapshot, &moments, log),
            None => Ok(()),
        };
        if ranks::first_did(written.is_ok(), &*snapshot.compute.comm)? {
            self.saved = Some(step);
        }
        written
    }

    fn write(
        &self,
        snapshot: &Snapshot,
        moments: &BTreeMap<String, Tensor>,
        log: &mut Log,
    ) -> Result<()> {
        let Snapshot {
            config,
            state,
            optimizer,
            compute,
        } = *snapshot;
        self.check_folder()?;
        let weights = optimizer.weights();
        let tensors = weights.values().chain(moments.values());
        if !profile::paused(|| norm_of_all(tensors, compute.kernels))?.is_finite() {
            return Err(Error::NotFinite { step: state.step });
        }
        let bundle = BundleConfig::new(
            config.model.clone(),
            vocabularies(&self.tokenizers),
            config.data.max_length,
        );
        let bundle = Bundle::files(&bundle, &self.tokenizers, &config.decode, &weights)?;
        log.sync()?; // a checkpoint never has a step that the log lacks
        self.checkpoints.write(Content {
            state,
            provenance: &self.provenance,
            config,
            bundle,
            optimizer: moments,
        })?;
        // The checkpoint is safe even if this fails. The next one tries again.
        let links = self.checkpoints.update_links(state);
        if let Err(error) = links.and_then(|()| self.checkpoints.remove_old(state, self.keep)) {
            log.print(&format!("warning: {error}"));
        }
        Ok(())
    }

    /// The same, but with `train.on_save_error = "warn"` a checkpoint that cannot be written is only
    /// reported. The next one tries again.
    pub(crate) fn save_or_warn(&mut self, snapshot: &Snapshot, log: &mut Log) -> Result<()> {
        match (self.save(snapshot, log), self.on_error) {
            (Err(error @ Error::Write { .. }), OnSaveError::Warn) => {
                let step = snapshot.state.step;
                log.print(&format!("warning: no checkpoint of step {step}: {error}"));
                Ok(())
            }
            (result, _) => result,
        }
    }

    /// Continues from a checkpoint that is there already. Corrects `last` and `best`, which a kill or
    /// damage may have left wrong.
    pub(crate) fn continue_from(&mut self, state: &TrainerState) -> Result<()> {
        self.saved = Some(state.step);
        match self.lock {
            Some(_) => self.checkpoints.update_links(state),
            None => Ok(()),
        }
    }

    /// Writes the run's `config.toml`, for people to read and to change.
    pub(crate) fn write_config(&self, config: &Config) -> Result<()> {
        if self.lock.is_none() {
            return Ok(());
        }
        let text = config.to_toml();
        // One that cannot be read is replaced.
        let written = self.folder.config().ok().flatten();
        if written.as_ref() == Some(&text) {
            return Ok(());
        }
        storage::write_file(&self.folder.config_path(), text.as_bytes())
    }
}
