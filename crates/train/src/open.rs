//! How a run begins: anew, or where it stopped.

use std::fs;
use std::path::Path as FilePath;
use std::sync::Arc;

use attend_data::{Batches, Corpus, Dataset, Paths, Position, Tokenizers};
use attend_model::{Path, Seq2Seq, Vocabularies};
use candle_core::Device;

use crate::checkpoint::{Checkpoint, Checkpoints, State, Unlogged};
use crate::config::Config;
use crate::health::Health;
use crate::log::Log;
use crate::optimizer::Optimizer;
use crate::provenance::Provenance;
use crate::room::Room;
use crate::run::{Clock, Run};
use crate::storage::{self, Lock};
use crate::validate::Validator;
use crate::{Error, Result, drift};

/// Whether a run's folder may hold a run already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    New,
    Overwrite,
}

/// What may be different when a run is taken up again.
#[derive(Clone, Debug, Default)]
pub struct Resume {
    /// Values of the config to override, such as `train.steps=500`.
    pub overrides: Vec<String>,
    /// Keys of the config, or tables of them, that may have changed though they change what is learnt.
    pub allow: Vec<String>,
}

impl Run {
    /// Starts a new run: checks all it can before it writes anything.
    pub fn start(config: Config, start: Start, device: Device, path: Path) -> Result<Self> {
        let folder = config.out.clone();
        check_unused(&folder, start)?;
        storage::check_writable(&folder)?;
        config.data.check_files()?;
        corpus(&config, config.data.test.as_ref())?; // so that the end has no surprise
        let setup = Setup::new(config, None, device, path)?;
        storage::make_folder(&folder)?;
        let lock = Lock::take(&folder)?;
        check_unused(&folder, start)?; // another may have been faster
        remove_run(&folder)?;
        let state = State {
            step: 0,
            position: Position::START,
            tokens: 0,
            seconds: 0.0,
            best: None,
            without_improvement: 0,
            unlogged: Unlogged::default(),
            health: Health::default(),
        };
        let mut run = setup.run(state, lock)?;
        run.save()?;
        run.write_config()?;
        Ok(run)
    }

    /// Takes up a run where its newest sound checkpoint left it.
    pub fn resume(folder: &FilePath, how: &Resume, device: Device, path: Path) -> Result<Self> {
        let nothing = || Error::NoCheckpoint(folder.to_path_buf());
        if !folder.is_dir() {
            return Err(nothing());
        }
        // A kill may have left its only checkpoint under another name.
        if Checkpoints::of(folder).steps()?.is_empty() && storage::leftovers(folder)?.is_empty() {
            return Err(nothing());
        }
        let lock = Lock::take(folder)?;
        storage::clean(folder)?;
        let checkpoint = Checkpoints::of(folder).newest()?;
        let mut config = how.config(folder, &checkpoint)?;
        config.out = folder.to_path_buf(); // it may have been moved
        let changes = drift::check(&checkpoint.config()?, &config, &how.allow)?;
        let changed = |keys: &[&str]| {
            let mut changes = changes.iter();
            changes.any(|change| drift::covers(keys.iter().copied(), &change.key))
        };
        let tokenizers = Tokenizers::load(&checkpoint.folder)?;
        let mut setup = Setup::new(config, Some(tokenizers), device, path)?;
        let mut state = checkpoint.state.clone();
        let other = setup.check_data(&checkpoint.provenance, how, changed(&["data.max_length"]))?;
        if other.training || changed(&["seed", "data.batch_tokens"]) {
            tracing::warn!("the batches are others now: the next epoch of them begins");
            state.position = Position {
                epoch: state.position.epoch + 1,
                index: 0,
            };
        }
        if other.validation || changed(&["train.metric", "train.translate"]) {
            tracing::warn!(
                "validations are judged in another way now: the best so far is forgotten"
            );
            (state.best, state.without_improvement) = (None, 0);
        }
        let parameters = checkpoint.parameters(&setup.device)?;
        let moments = checkpoint.optimizer(&setup.device)?;
        let restored = setup.optimizer.restore(&parameters, &moments);
        // The checkpoint is sound, so it is the config that has changed.
        restored.map_err(|problem| Error::OtherModel {
            folder: folder.to_path_buf(),
            problem,
        })?;
        drop((parameters, moments));
        let mut run = setup.run(state, lock)?;
        match changes.is_empty() && !other.training && !other.validation {
            true => {
                run.saved = Some(run.state.step);
                run.checkpoints.point(&run.state)?; // a kill may have come before it, or damage after
            }
            false => run.save()?, // with what has changed, so that it need not be allowed again
        }
        run.write_config()?;
        Ok(run)
    }

    /// What it trains with, for people to read and to change.
    fn write_config(&self) -> Result<()> {
        let (path, text) = (self.config.out.join("config.toml"), self.config.to_toml());
        match fs::read_to_string(&path).is_ok_and(|there| there == text) {
            true => Ok(()),
            false => storage::write_file(&path, text.as_bytes()),
        }
    }
}

impl Resume {
    /// The run's config, with what is overridden; if it is lost, that of the checkpoint.
    fn config(&self, folder: &FilePath, checkpoint: &Checkpoint) -> Result<Config> {
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
        let path = folder.join("config.toml");
        if path.exists() {
            return Config::read(&path, &self.overrides);
        }
        let path = checkpoint.folder.join("config.toml");
        tracing::warn!(
            "{} has lost its config.toml; taking {}",
            folder.display(),
            path.display()
        );
        Config::read(&path, &self.overrides)
    }

    fn allows(&self, key: &str) -> bool {
        drift::covers(self.allow.iter().map(String::as_str), key)
    }
}

/// Which data has changed.
struct Other {
    training: bool,
    validation: bool,
}

/// Whether a new run may be written there.
fn check_unused(folder: &FilePath, start: Start) -> Result<()> {
    let used = folder.join("config.toml").exists() || !Checkpoints::of(folder).steps()?.is_empty();
    match used && start == Start::New {
        true => Err(Error::UsedFolder(folder.to_path_buf())),
        false => Ok(()),
    }
}

/// What a config makes, before anything is trained.
struct Setup {
    config: Config,
    device: Device,
    path: Path,
    tokenizers: Tokenizers,
    dataset: Dataset,
    validator: Option<Validator>,
    model: Box<dyn Seq2Seq>,
    optimizer: Optimizer,
    provenance: Provenance,
    room: Room,
}

impl Setup {
    /// Reads the data, and makes tokenizers and parameters; with tokenizers that are given, the
    /// parameters will be too.
    fn new(
        config: Config,
        tokenizers: Option<Tokenizers>,
        device: Device,
        path: Path,
    ) -> Result<Self> {
        let training = Corpus::read(&config.data.train, &config.data.source, &config.data.target)?;
        let validation = corpus(&config, config.data.valid.as_ref())?;
        let resumes = tokenizers.is_some();
        let tokenizers = match tokenizers {
            Some(tokenizers) => tokenizers,
            None => Tokenizers::from_config(&config.data.tokenizer, &training)?,
        };
        let vocabularies = vocabularies(&tokenizers);
        config.model.validate_with(vocabularies)?;
        let longest = Some(config.data.max_length);
        let (dataset, report) = Dataset::encode(&training, &tokenizers, longest)?;
        tracing::info!("{report}");
        let model = match resumes {
            true => config.model.blank(vocabularies, &device)?,
            false => config.model.build(vocabularies, config.seed, &device)?,
        };
        let room = Room::new(
            &config.train,
            &*model,
            config.model.activations(vocabularies),
            &dataset,
        )?;
        let optimizer = Optimizer::new(model.params(), &config.train, path)?;
        let validator = validation.map(|corpus| Validator::new(corpus, &tokenizers, &config));
        let validator = validator.transpose()?;
        let validation = validator.as_ref().map(Validator::dataset);
        Ok(Self {
            provenance: Provenance::new(
                &config,
                &tokenizers,
                &dataset,
                validation,
                (&device, path),
            ),
            config,
            device,
            path,
            tokenizers,
            dataset,
            validator,
            model,
            optimizer,
            room,
        })
    }

    /// Compares with what a checkpoint was made from; other data is refused unless it is allowed, or
    /// other because of what is.
    fn check_data(&self, before: &Provenance, how: &Resume, cut: bool) -> Result<Other> {
        let now = &self.provenance;
        for (what, before, now) in [
            ("program", &before.program, &now.program),
            ("machine", &before.target, &now.target),
            ("way of computing", &before.computed, &now.computed),
        ] {
            if before != now {
                tracing::warn!("another {what} ({now}, before: {before}): bits may differ");
            }
        }
        let other = Other {
            training: now.data != before.data,
            validation: now.validation != before.validation,
        };
        for (changed, key, what) in [
            (other.training && !cut, "data.train", "training"),
            (other.validation, "data.valid", "validation"),
        ] {
            if changed && !how.allows(key) {
                let folder = self.config.out.clone();
                return Err(Error::DataChanged { folder, what, key });
            }
            if changed {
                tracing::warn!("the {what} data has changed, as allowed");
            }
        }
        Ok(other)
    }

    fn run(self, state: State, lock: Lock) -> Result<Run> {
        let Self {
            config, tokenizers, ..
        } = self;
        let (dataset, budget) = (Arc::new(self.dataset), config.data.batch_tokens);
        let batches = Batches::new(dataset, budget, config.seed, state.position)?;
        let log = Log::open(
            &config.out,
            state.step,
            last_step(&config, batches.epoch_len()),
            config.train.on_save_error,
        )?;
        let run = Run {
            batches,
            vocabularies: vocabularies(&tokenizers),
            validator: self.validator,
            checkpoints: Checkpoints::of(&config.out),
            model: self.model,
            optimizer: self.optimizer,
            device: self.device,
            path: self.path,
            clock: Clock::now(),
            saved: None,
            before_best: (None, 0),
            provenance: self.provenance,
            room: self.room,
            _lock: lock,
            config,
            state,
            tokenizers,
            log,
        };
        run.log.say(&format!(
            "{}: {} parameters, {} tokens of vocabulary, {} batches an epoch, from step {}",
            run.config.out.display(),
            run.model.params().count(),
            run.vocabularies.target,
            run.batches.epoch_len(),
            run.state.step,
        ));
        Ok(run)
    }
}

/// Where training ends at the latest, if epochs are all alike.
fn last_step(config: &Config, epoch_len: usize) -> u64 {
    let updates = |epochs: u64| {
        let batches = epochs.saturating_mul(epoch_len as u64);
        batches.div_ceil(config.train.accumulate as u64)
    };
    let steps = config.train.steps;
    config
        .train
        .epochs
        .map_or(steps, |epochs| steps.min(updates(epochs)))
}

/// A corpus of the config, if it names one.
pub(crate) fn corpus(config: &Config, paths: Option<&Paths>) -> Result<Option<Corpus>> {
    let corpus = paths.map(|paths| Corpus::read(paths, &config.data.source, &config.data.target));
    Ok(corpus.transpose()?)
}

pub(crate) fn vocabularies(tokenizers: &Tokenizers) -> Vocabularies {
    Vocabularies {
        source: tokenizers.source().vocab_size(),
        target: tokenizers.target().vocab_size(),
        joint: tokenizers.is_joint(),
    }
}

/// Removes what a run wrote, and nothing else that the folder may hold.
fn remove_run(folder: &FilePath) -> Result<()> {
    storage::clean(folder)?;
    for step in Checkpoints::of(folder).steps()? {
        storage::remove_folder(&folder.join(format!("checkpoint-{step}")))?;
    }
    for name in ["last", "best", "averaged", "metrics.jsonl", "config.toml"] {
        storage::remove(&folder.join(name))?;
    }
    Ok(())
}
