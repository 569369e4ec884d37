//! How a run begins: anew, or where it stopped.

use std::fs;
use std::io;
use std::path::Path as FilePath;
use std::sync::Arc;

use attend_data::{Batches, Corpus, Dataset, Paths, Position, Tokenizers};
use attend_model::{Path, Seq2Seq, Vocabularies};
use candle_core::Device;

use crate::checkpoint::{Checkpoints, State, Unlogged};
use crate::config::Config;
use crate::log::Log;
use crate::optimizer::Optimizer;
use crate::run::{Clock, Run};
use crate::validate::Validator;
use crate::{Error, Result, storage};

/// Whether a run's folder may hold a run already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    New,
    Overwrite,
}

impl Run {
    /// Starts a new run: checks all it can before it writes anything.
    pub fn start(config: Config, start: Start, device: Device, path: Path) -> Result<Self> {
        let folder = config.out.clone();
        let used =
            folder.join("config.toml").exists() || !Checkpoints::of(&folder).steps()?.is_empty();
        if used && start == Start::New {
            return Err(Error::UsedFolder(folder));
        }
        storage::check_writable(&folder)?;
        config.data.check_files()?;
        corpus(&config, config.data.test.as_ref())?; // so that the end has no surprise
        let setup = Setup::new(config, None, device, path)?;
        if used {
            remove_run(&folder)?;
        }
        let made = fs::create_dir_all(&folder);
        made.map_err(|source| Error::Write {
            path: folder.clone(),
            source,
        })?;
        let config = setup.config.to_toml();
        storage::write_file(&folder.join("config.toml"), config.as_bytes())?;
        let state = State {
            step: 0,
            position: Position::START,
            tokens: 0,
            seconds: 0.0,
            best: None,
            without_improvement: 0,
            data: setup.dataset.fingerprint(),
            unlogged: Unlogged::default(),
        };
        let mut run = setup.run(state)?;
        run.save()?;
        Ok(run)
    }

    /// Takes up a run where its newest sound checkpoint left it.
    pub fn resume(folder: &FilePath, device: Device, path: Path) -> Result<Self> {
        if !folder.join("config.toml").exists() {
            return Err(Error::NoCheckpoint(folder.to_path_buf()));
        }
        storage::clean(folder)?;
        let checkpoint = Checkpoints::of(folder).newest()?;
        let mut config = Config::read(&folder.join("config.toml"), &[])?;
        config.out = folder.to_path_buf(); // it may have been moved
        let tokenizers = Tokenizers::load(&checkpoint.folder)?;
        let mut setup = Setup::new(config, Some(tokenizers), device, path)?;
        if setup.dataset.fingerprint() != checkpoint.state.data {
            return Err(Error::DataChanged(folder.to_path_buf()));
        }
        let parameters = checkpoint.parameters(&setup.device)?;
        let moments = checkpoint.optimizer(&setup.device)?;
        let restored = setup.optimizer.restore(&parameters, &moments);
        // The checkpoint is sound, so it is the config that has changed.
        restored.map_err(|problem| Error::ConfigChanged {
            folder: folder.to_path_buf(),
            problem,
        })?;
        let mut run = setup.run(checkpoint.state)?;
        run.saved = Some(run.state.step);
        run.checkpoints.point(&run.state)?; // a kill may have come before it, or damage after
        Ok(run)
    }
}

/// What a config makes, before anything is trained.
struct Setup {
    config: Config,
    device: Device,
    path: Path,
    tokenizers: Tokenizers,
    dataset: Dataset,
    validation: Option<Corpus>,
    model: Box<dyn Seq2Seq>,
    optimizer: Optimizer,
}

impl Setup {
    /// Reads the data, and makes tokenizers from it if none are given.
    fn new(
        config: Config,
        tokenizers: Option<Tokenizers>,
        device: Device,
        path: Path,
    ) -> Result<Self> {
        let training = Corpus::read(&config.data.train, &config.data.source, &config.data.target)?;
        let validation = corpus(&config, config.data.valid.as_ref())?;
        let tokenizers = match tokenizers {
            Some(tokenizers) => tokenizers,
            None => Tokenizers::from_config(&config.data.tokenizer, &training)?,
        };
        let vocabularies = vocabularies(&tokenizers);
        config.model.validate_with(vocabularies)?;
        let longest = Some(config.data.max_length);
        let (dataset, report) = Dataset::encode(&training, &tokenizers, longest)?;
        tracing::info!("{report}");
        let model = config.model.build(vocabularies, config.seed, &device)?;
        let optimizer = Optimizer::new(model.params(), &config.train, path)?;
        Ok(Self {
            config,
            device,
            path,
            tokenizers,
            dataset,
            validation,
            model,
            optimizer,
        })
    }

    fn run(self, state: State) -> Result<Run> {
        let Self {
            config, tokenizers, ..
        } = self;
        let validator = self
            .validation
            .map(|corpus| Validator::new(corpus, &tokenizers, &config));
        let (dataset, budget) = (Arc::new(self.dataset), config.data.batch_tokens);
        let batches = Batches::new(dataset, budget, config.seed, state.position)?;
        let log = Log::open(
            &config.out,
            state.step,
            last_step(&config, batches.epoch_len()),
        )?;
        let run = Run {
            batches,
            vocabularies: vocabularies(&tokenizers),
            validator: validator.transpose()?,
            checkpoints: Checkpoints::of(&config.out),
            model: self.model,
            optimizer: self.optimizer,
            device: self.device,
            path: self.path,
            clock: Clock::now(),
            saved: None,
            epoch: state.position.epoch,
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
        let path = folder.join(format!("checkpoint-{step}"));
        fs::remove_dir_all(&path).map_err(|source| Error::Write { path, source })?;
    }
    for name in ["last", "best", "averaged", "metrics.jsonl", "config.toml"] {
        let path = folder.join(name);
        let removed = match path.is_dir() && !path.is_symlink() {
            true => fs::remove_dir_all(&path),
            false => fs::remove_file(&path),
        };
        match removed {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(Error::Write { path, source });
            }
            _ => {}
        }
    }
    Ok(())
}
