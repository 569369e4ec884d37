use std::sync::Arc;

use attend_cli::Bars;
use attend_data::{Batches, Dataset, Keep, Tokenizers};
use attend_infer::run::{Checkpoint, Provenance, RunFolder, TrainerState};
use attend_infer::vocabularies;
use attend_model::Seq2Seq;

use crate::batcher::Batcher;
use crate::compute::Compute;
use crate::config::Config;
use crate::corpora::Corpora;
use crate::judge::Judge;
use crate::log::Log;
use crate::memory_budget::MemoryBudget;
use crate::optimizer::Optimizer;
use crate::provenance::provenance;
use crate::run::Clock;
use crate::saver::Saver;
use crate::storage::Lock;
use crate::validate::Validator;
use crate::{Error, Result, Run};

/// What a config makes, before anything is trained or written.
pub(crate) struct Setup {
    config: Config,
    compute: Compute,
    tokenizers: Arc<Tokenizers>,
    dataset: Dataset,
    validator: Option<Validator>,
    model: Box<dyn Seq2Seq>,
    optimizer: Optimizer,
    provenance: Provenance,
    memory: MemoryBudget,
}

/// Which data is not what a checkpoint was trained with.
pub(crate) struct DataChanges {
    pub(crate) training: bool,
    pub(crate) validation: bool,
}

/// How a new model's parameters begin.
enum Initialization {
    Random,
    /// Empty, to be restored from a checkpoint.
    Blank,
}

impl Setup {
    /// Trains or reads the tokenizers, and makes a model with random parameters.
    pub(crate) fn new(config: Config, corpora: Corpora, compute: Compute) -> Result<Self> {
        let tokenizers = Tokenizers::from_config(&config.data.tokenizer, &corpora.training, &Bars)?;
        Self::make(config, corpora, tokenizers, compute, Initialization::Random)
    }

    /// With the tokenizers of a checkpoint. The parameters are to be restored.
    pub(crate) fn with_tokenizers(
        config: Config,
        corpora: Corpora,
        tokenizers: Tokenizers,
        compute: Compute,
    ) -> Result<Self> {
        Self::make(config, corpora, tokenizers, compute, Initialization::Blank)
    }

    fn make(
        config: Config,
        corpora: Corpora,
        tokenizers: Tokenizers,
        compute: Compute,
        initialization: Initialization,
    ) -> Result<Self> {
        let tokenizers = Arc::new(tokenizers);
        let vocabularies = vocabularies(&tokenizers);
        config.model.validate_with(vocabularies)?;
        let footprint = config.model.footprint(vocabularies)?;
        compute.check_memory(MemoryBudget::of_model(&config.train, &footprint))?;
        let max_length = config.data.max_length;
        let keep = Keep::ToTrain { max_length };
        let (dataset, report) = Dataset::encode(&corpora.training, &tokenizers, keep, &Bars)?;
        tracing::info!("{report}");
        let memory = MemoryBudget::new(&config, footprint, &dataset)?;
        compute.check_memory(memory.estimate(&dataset, config.data.batch_tokens))?;
        let model = match initialization {
            Initialization::Random => {
                config
                    .model
                    .build(vocabularies, config.seed, &compute.device)?
            }
            Initialization::Blank => config.model.blank(vocabularies, &compute.device)?,
        };
        let optimizer = Optimizer::new(model.weights(), &config.train, compute.kernels)?;
        let validator = corpora.validation;
        let validator = validator.map(|corpus| Validator::new(corpus, tokenizers.clone(), &config));
        let validator = validator.transpose()?;
        let validation = validator.as_ref().map(Validator::dataset);
        Ok(Self {
            provenance: provenance(&config, &tokenizers, &dataset, validation, &compute),
            config,
            compute,
            tokenizers,
            dataset,
            validator,
            model,
            optimizer,
            memory,
        })
    }

    /// Compares the data with that of a checkpoint. Another program, machine or device is only
    /// reported.
    pub(crate) fn data_changes(&self, checkpoint: &Checkpoint) -> DataChanges {
        let (before, now) = (&checkpoint.provenance, &self.provenance);
        let isa = before.knows_isa().then_some(&before.isa);
        for (what, before, now) in [
            ("program", Some(&before.program), &now.program),
            ("machine", Some(&before.target), &now.target),
            ("way of computing", Some(&before.computed), &now.computed),
            ("version of the kernels", isa, &now.isa),
        ] {
            if let Some(before) = before.filter(|&before| before != now) {
                tracing::warn!("another {what} ({now}, before: {before}): bits may differ");
            }
        }
        DataChanges {
            training: now.data != before.data,
            validation: now.validation != before.validation,
        }
    }

    /// Takes the parameters and the optimizer's state from a checkpoint.
    pub(crate) fn restore(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        let parameters = checkpoint.parameters(&self.compute.device)?;
        let moments = checkpoint.optimizer(&self.compute.device)?;
        let restored = self.optimizer.restore(&parameters, &moments);
        // The checkpoint is not damaged, so it is the config that has changed.
        restored.map_err(|problem| Error::OtherModel {
            folder: self.config.out.clone(),
            problem,
        })
    }

    pub(crate) fn run(self, state: TrainerState, lock: Lock) -> Result<Run> {
        let Self {
            config,
            compute,
            tokenizers,
            dataset,
            validator,
            model,
            optimizer,
            provenance,
            memory,
        } = self;
        let budget = config.data.batch_tokens;
        let batches = Batches::new(Arc::new(dataset), budget, config.seed, state.position)?;
        let batcher = Batcher::new(batches, memory);
        let log = Log::open(
            &RunFolder::new(&config.out),
            state.step,
            last_step(&config, batcher.epoch_len()),
            config.train.on_save_error,
        )?;
        log.print(&format!(
            "{}: {} parameters, {} tokens of vocabulary, {} batches an epoch, from step {}",
            config.out.display(),
            model.weights().count(),
            vocabularies(&tokenizers).target,
            batcher.epoch_len(),
            state.step,
        ));
        Ok(Run {
            judge: Judge::new(&config.train, validator),
            saver: Saver::new(&config, tokenizers, provenance, lock),
            clock: Clock::start(),
            config,
            model,
            state,
            compute,
            batcher,
            optimizer,
            log,
        })
    }
}

/// The step at which training ends at the latest, if every epoch has as many batches.
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
