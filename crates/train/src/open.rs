//! How a run begins: as a new one, or from a checkpoint.

use std::path::Path;

use attend_data::Position;
use attend_infer::run::{Checkpoint, Content, Link, RunFolder, TrainerState};
use attend_model::Vocabularies;

use crate::checkpoint::config_of;
use crate::compute::Compute;
use crate::config::Config;
use crate::corpora::Corpora;
use crate::drift::{self, Changes};
use crate::judge::Judge;
use crate::memory_budget::MemoryBudget;
use crate::ranks::first_then_others;
use crate::setup::{DataChanges, Setup};
use crate::storage::{self, Lock};
use crate::{Error, Result, Run, tensorboard};

/// Whether a run's folder may hold a run already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    New,
    Overwrite,
}

/// What may be different when a run is resumed.
#[derive(Clone, Debug, Default)]
pub struct ResumeOptions {
    /// Values of the config to override, such as `train.steps=500`.
    pub overrides: Vec<String>,
    /// Keys of the config, or tables of them, that may have changed although they change training.
    pub allow: Vec<String>,
}

/// The keys of the config that decide which batches there are and their order.
pub(crate) const BATCH_KEYS: [&str; 3] = ["seed", "data.batch_tokens", "data.augment"];
/// The keys that decide which pairs of a corpus are trained on.
pub(crate) const PAIR_KEYS: [&str; 3] = ["data.max_length", "data.clean", "data.bad_lines"];

impl Run {
    /// An error if [`Run::start`] would refuse the run's folder.
    pub fn check_new(config: &Config, start: Start) -> Result<()> {
        check_unused(&RunFolder::new(&config.out), start)
    }

    /// Starts a new run.
    pub fn start(config: Config, start: Start, compute: Compute) -> Result<Self> {
        let folder = RunFolder::new(&config.out);
        if compute.comm.is_first() {
            check_unused(&folder, start)?;
        }
        let comm = compute.comm.clone();
        let prepare = |config: Config| {
            let corpora = Corpora::find(&config)?;
            check_model_size(&config, &compute)?;
            corpora.test_set()?; // an error now rather than at the end
            // Writes a file and removes it, so after all checks that only read.
            if comm.is_first() {
                storage::check_writable(folder.path())?;
            }
            Setup::new(config, &corpora, compute.clone())
        };
        let claim = || {
            storage::make_folder(folder.path())?;
            let lock = Lock::acquire(&folder)?;
            check_unused(&folder, start)?; // another process may have been faster
            remove_run(&folder)?;
            Result::Ok(lock)
        };
        let setup = first_then_others(&*comm, || prepare(config))?;
        let state = TrainerState::default();
        setup.check_alike(&state)?; // only now is an old run removed
        let lock = comm.is_first().then(claim).transpose()?;
        let mut run = setup.run(state, lock)?;
        run.save()?;
        run.saver.write_config(&run.config)?;
        Ok(run)
    }

    /// Continues a run from its newest checkpoint that is not damaged.
    pub fn resume(folder: &Path, options: &ResumeOptions, compute: Compute) -> Result<Self> {
        let comm = compute.comm.clone();
        let resumed = first_then_others(&*comm, || Resumed::open(folder, options, compute))?;
        let Resumed {
            setup,
            state,
            lock,
            unchanged,
        } = resumed;
        setup.check_alike(&state)?;
        let mut run = setup.run(state, lock)?;
        if unchanged {
            run.saver.continue_from(&run.state)?;
        } else {
            run.save()?; // with the changes, so that they need not be allowed again
        }
        run.saver.write_config(&run.config)?;
        Ok(run)
    }
}

/// What a run is continued from.
struct Resumed {
    setup: Setup,
    state: TrainerState,
    /// Of the rank that writes.
    lock: Option<Lock>,
    /// Whether training goes on as the checkpoint says.
    unchanged: bool,
}

impl Resumed {
    fn open(folder: &Path, options: &ResumeOptions, compute: Compute) -> Result<Self> {
        let run = RunFolder::new(folder);
        if !folder.is_dir() {
            return Err(Error::no_checkpoint(folder));
        }
        // A kill may have left its only checkpoint under another name.
        if run.steps()?.is_empty() && storage::leftovers(folder)?.is_empty() {
            return Err(Error::no_checkpoint(folder));
        }
        let first = compute.comm.is_first();
        let lock = first.then(|| Lock::acquire(&run)).transpose()?;
        if lock.is_some() {
            storage::clean_up(folder)?;
        }
        let checkpoint = run.newest()?;
        let mut config = options.config(&run, &checkpoint)?;
        config.out = folder.to_path_buf(); // it may have been moved
        let changes = Changes::check(&config_of(&checkpoint)?, &config, &options.allow)?;
        let metric = config.train.metric;
        let training_key = match config.data.train {
            Some(_) => "data.train",
            None => "data.corpora",
        };
        let corpora = Corpora::find(&config)?;
        let mut setup = Setup::of_checkpoint(config, &corpora, &checkpoint, compute)?;
        let mut state = checkpoint.state.clone();
        let data = setup.data_changes(&checkpoint);
        options.check_data(folder, &data, changes.include(&PAIR_KEYS), training_key)?;
        let reordered = !checkpoint.provenance.knows_order();
        if data.training || reordered || changes.include(&BATCH_KEYS) {
            tracing::warn!("the batches have changed: continuing with the next epoch");
            let stage = setup.stage_at(state.step);
            state.position = Position {
                stage,
                ..state.position.next_epoch()
            };
        }
        let incomparable = data.validation || changes.include(Judge::keys(metric));
        if incomparable {
            Judge::forget(&mut state);
        }
        setup.restore(&checkpoint)?;
        let same_data = !data.training && !reordered && !incomparable;
        Ok(Self {
            setup,
            state,
            lock,
            unchanged: changes.are_free() && same_data,
        })
    }
}

impl ResumeOptions {
    /// The run's config with the overrides. If it is missing, that of the checkpoint.
    fn config(&self, run: &RunFolder, checkpoint: &Checkpoint) -> Result<Config> {
        let out = |text: &&String| {
            text.split('=')
                .next()
                .is_some_and(|key| key.trim() == "out")
        };
        if let Some(text) = self.overrides.iter().find(out) {
            return Err(Error::Config {
                place: format!("--set {text}"),
                message: "a run is resumed where it is".into(),
                hint: Some("move its folder, and resume it there".into()),
            });
        }
        let path = run.config_path();
        if path.exists() {
            return Config::read_run(&path, &self.overrides);
        }
        let path = checkpoint.folder.join(Checkpoint::CONFIG);
        tracing::warn!(
            "{} has lost its config.toml; taking {}",
            run.path().display(),
            path.display()
        );
        Config::read_run(&path, &self.overrides)
    }

    /// Other data is an error unless it is allowed. With other filters, which are allowed, other pairs are
    /// trained on.
    fn check_data(
        &self,
        folder: &Path,
        data: &DataChanges,
        other_pairs: bool,
        training_key: &'static str,
    ) -> Result<()> {
        let training = data.training && !other_pairs;
        for (changed, key, what) in [
            (training, training_key, "training"),
            (data.validation, "data.valid", "validation"),
        ] {
            if changed && !drift::covers(self.allow.iter().map(String::as_str), key) {
                return Err(Error::DataChanged {
                    folder: folder.to_path_buf(),
                    what,
                    key,
                    corpora: match what {
                        "training" => data.corpora.clone(),
                        _ => Vec::new(),
                    },
                });
            }
            if changed {
                tracing::warn!("the {what} data has changed, as allowed");
            }
        }
        Ok(())
    }
}

/// An error if a new run may not be written there.
pub(crate) fn check_unused(folder: &RunFolder, start: Start) -> Result<()> {
    let path = || folder.path().to_path_buf();
    match folder.content()? {
        Content::Nothing => Ok(()),
        Content::Foreign => Err(Error::ForeignFolder(path())),
        Content::Run if start == Start::New && folder.is_used()? => Err(Error::UsedFolder(path())),
        Content::Run => Ok(()),
    }
}

/// An error if the model is too large for this machine with the smallest of vocabularies, before time is
/// spent on its data.
fn check_model_size(config: &Config, compute: &Compute) -> Result<()> {
    let smallest = 4; // `</s>`, `<unk>`, `<pad>` and one more
    let vocabularies = Vocabularies {
        source: config.data.source_kind.is_text().then_some(smallest),
        target: smallest,
        joint: config.data.is_joint(),
    };
    let footprint = MemoryBudget::footprint(config, vocabularies)?;
    compute.check_memory(MemoryBudget::of_model(&config.train, &footprint))
}

/// Removes the files of a run, and no others that the folder may hold.
fn remove_run(run: &RunFolder) -> Result<()> {
    storage::clean_up(run.path())?;
    for step in run.steps()? {
        storage::remove_folder(&run.checkpoint_path(step))?;
    }
    tensorboard::remove(run, None)?;
    for path in [
        run.link_path(Link::Last),
        run.link_path(Link::Best),
        run.path().join("averaged"),
        run.log_path(),
        run.config_path(),
    ] {
        storage::remove(&path)?;
    }
    // A report is a file.
    let report = run.report_path();
    if !report.is_dir() {
        storage::remove(&report)?;
    }
    Ok(())
}
