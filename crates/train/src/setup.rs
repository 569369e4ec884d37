use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use attend_data::{Augmenter, Batches, Dataset, Mixture, Tokenizers};
use attend_infer::run::{Checkpoint, CorpusProvenance, Provenance, RunFolder, TrainerState};
use attend_infer::vocabularies;
use attend_model::{Seq2Seq, Vocabularies, Weights};
use attend_ops::Weight;
use candle_core::{Device, Tensor};

use crate::batcher::Batcher;
use crate::compute::Compute;
use crate::config::Config;
use crate::corpora::Corpora;
use crate::freeze::Freeze;
use crate::init::Init;
use crate::judge::Judge;
use crate::log::Log;
use crate::memory_budget::MemoryBudget;
use crate::optimizer::Optimizer;
use crate::provenance::provenance;
use crate::run::Clock;
use crate::saver::Saver;
use crate::storage::Lock;
use crate::validate::Validator;
use crate::{Error, Result, Run, ranks};

/// What a config makes, before anything is trained or written.
pub(crate) struct Setup {
    config: Config,
    compute: Compute,
    tokenizers: Arc<Tokenizers>,
    training: Arc<Mixture>,
    augmenter: Option<Augmenter>,
    /// The first file of each input of each corpus.
    inputs: Vec<Vec<PathBuf>>,
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
    /// The corpora of the training data that are not what they were, if their number is the same.
    pub(crate) corpora: Vec<String>,
}

/// How a model's weights begin.
enum Initialization {
    Random,
    /// With those of another model, as far as they fit.
    From(Box<Init>),
    /// With those of a checkpoint.
    Checkpoint(HashMap<String, Tensor>),
}

impl Setup {
    /// Trains or reads the tokenizers, or takes those of `train.init`, and makes a new model.
    pub(crate) fn new(config: Config, corpora: &Corpora, compute: Compute) -> Result<Self> {
        let (tokenizers, init) = tokenizers(&config, corpora, &compute.device)?;
        let initialization = init.map_or(Initialization::Random, |init| {
            Initialization::From(init.into())
        });
        Self::make(config, corpora, tokenizers, compute, initialization)
    }

    /// With the tokenizers and the weights of a checkpoint. The optimizer is to be restored.
    pub(crate) fn of_checkpoint(
        config: Config,
        corpora: &Corpora,
        checkpoint: &Checkpoint,
        compute: Compute,
    ) -> Result<Self> {
        let tokenizers = Tokenizers::load(&checkpoint.folder)?;
        let weights = checkpoint.parameters(&compute.device)?;
        let initialization = Initialization::Checkpoint(weights);
        Self::make(config, corpora, tokenizers, compute, initialization)
    }

    fn make(
        config: Config,
        corpora: &Corpora,
        tokenizers: Tokenizers,
        compute: Compute,
        initialization: Initialization,
    ) -> Result<Self> {
        let tokenizers = Arc::new(tokenizers);
        let vocabularies = vocabularies(&tokenizers);
        config.model.validate_with(vocabularies)?;
        let footprint = MemoryBudget::footprint(&config, vocabularies)?;
        compute.check_memory(MemoryBudget::of_model(&config.train, &footprint))?;
        let memory = MemoryBudget::new(&config, footprint)?;
        let augmenter = corpora.augmenter(&tokenizers)?;
        let training = Arc::new(corpora.training(&tokenizers)?);
        let share = config.data.batch_tokens.div_ceil(compute.comm.size());
        compute.check_memory(memory.estimate(&training, share))?;
        let model = initialization.model(&config, &tokenizers, &compute.device)?;
        let optimizer = Optimizer::new(
            model.weights(),
            &config.train,
            compute.kernels,
            compute.comm.clone(),
        )?;
        let validation = corpora.validation(&tokenizers)?;
        let validator = validation.map(|data| Validator::new(data, tokenizers.clone(), &config));
        let validator = validator.transpose()?;
        let validation = validator.as_ref().map(Validator::dataset);
        let texts = corpora.texts();
        let named = texts.iter().zip(training.datasets());
        let named = named.map(|(text, data)| CorpusProvenance {
            name: text.name(),
            data: data.fingerprint().into(),
            pairs: *data.counts(),
        });
        let named = named.collect();
        let inputs = texts.iter().map(|text| {
            let files = text
                .inputs
                .iter()
                .filter_map(|input| input.files().first().copied());
            files.map(Into::into).collect()
        });
        Ok(Self {
            provenance: provenance(&config, &tokenizers, &training, named, validation, &compute),
            inputs: inputs.collect(),
            augmenter,
            config,
            compute,
            tokenizers,
            training,
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
        if before.ranks != now.ranks {
            tracing::warn!(
                "the checkpoint was trained by {}, and goes on with {}: the same batches, shared out differently, so \
                 sums round differently",
                ranks::count(before.ranks),
                ranks::count(now.ranks),
            );
        }
        // A checkpoint of an older program has no hashes that could be compared.
        let comparable = before.knows_order();
        let corpora = before.corpora.iter().zip(&now.corpora);
        let corpora = corpora.filter(|(before, now)| before.data != now.data);
        let corpora = corpora.map(|(_, now)| now.name.clone()).collect();
        DataChanges {
            training: comparable && now.data != before.data,
            validation: comparable && now.validation != before.validation,
            corpora,
        }
    }

    pub(crate) fn tokenizers(&self) -> &Tokenizers {
        &self.tokenizers
    }

    pub(crate) fn training(&self) -> &Arc<Mixture> {
        &self.training
    }

    pub(crate) fn validation(&self) -> Option<&Dataset> {
        self.validator.as_ref().map(Validator::dataset)
    }

    pub(crate) fn weights(&self) -> &Weights {
        self.model.weights()
    }

    /// Tokens of the source's and the target's vocabulary.
    pub(crate) fn vocabulary(&self) -> (usize, usize) {
        let Vocabularies { source, target, .. } = vocabularies(&self.tokenizers);
        (source.unwrap_or(0), target)
    }

    /// Bytes at the peak of training, by estimate.
    pub(crate) fn memory_estimate(&self) -> u64 {
        let ranks = self.compute.comm.size();
        let share = self.config.data.batch_tokens.div_ceil(ranks);
        self.memory.estimate(&self.training, share)
    }

    /// An error if other ranks do not train the same from this state on.
    pub(crate) fn check_alike(&self, state: &TrainerState) -> Result<()> {
        ranks::check_alike(&self.provenance, state, &*self.compute.comm)
    }

    /// The stage of the mixture of corpora at this step.
    pub(crate) fn stage_at(&self, step: u64) -> u64 {
        self.training.stage_at(step)
    }

    /// Takes the optimizer's state from a checkpoint.
    pub(crate) fn restore(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        let state = checkpoint.optimizer(&self.compute.device)?;
        let restored = self.optimizer.restore(&state);
        restored.map_err(|problem| other_model(&self.config, problem))
    }

    /// A run that says what it trains. The rank that writes has the lock.
    pub(crate) fn run(self, state: TrainerState, lock: Option<Lock>) -> Result<Run> {
        let (_, vocabulary) = self.vocabulary();
        let run = self.silent_run(state, lock)?;
        run.log.print(&format!(
            "{}: {} parameters, {vocabulary} tokens of vocabulary, about {} batches an epoch, from step {}{}",
            run.config.out.display(),
            run.model.weights().count(),
            run.batcher.epoch_len(),
            run.state.step,
            match run.compute.comm.size() {
                1 => String::new(),
                ranks => format!(", {ranks} ranks"),
            },
        ));
        Ok(run)
    }

    pub(crate) fn silent_run(self, state: TrainerState, lock: Option<Lock>) -> Result<Run> {
        let Self {
            config,
            compute,
            tokenizers,
            training,
            augmenter,
            inputs,
            validator,
            model,
            optimizer,
            provenance,
            memory,
        } = self;
        let budget = config.data.batch_tokens;
        let batches = Batches::new(training.clone(), budget, augmenter, state.position)?;
        let batcher = Batcher::new(batches, training, memory, compute.comm.clone(), inputs);
        let log = match lock {
            None => Log::nowhere(&config.train),
            Some(_) => Log::open(
                &RunFolder::new(&config.out),
                state.step,
                last_step(&config, batcher.epoch_len()),
                &config.train,
            )?,
        };
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

/// Trains or reads the tokenizers of a config, or takes those of `train.init`, which is also returned.
pub(crate) fn tokenizers(
    config: &Config,
    corpora: &Corpora,
    device: &Device,
) -> Result<(Tokenizers, Option<Init>)> {
    let init = config.train.init.as_deref();
    let init = init.map(|path| Init::open(path, device)).transpose()?;
    let settings = &config.data.tokenizer;
    let tokenizers = match &init {
        Some(init) if settings.file.is_none() => corpora.of_sources(init.tokenizers.clone()),
        _ => corpora.tokenizers()?,
    };
    let tokenizers = tokenizers.with_added(&settings.add_tokens)?;
    Ok((tokenizers.with_tags(&corpora.tags())?, init))
}

impl Initialization {
    /// The model that is trained, with what the config freezes frozen.
    fn model(
        self,
        config: &Config,
        tokenizers: &Tokenizers,
        device: &Device,
    ) -> Result<Box<dyn Seq2Seq>> {
        let vocabularies = vocabularies(tokenizers);
        let freeze = Freeze::new(&config.train.freeze);
        let random = || config.model.build(vocabularies, config.seed, device);
        let weights = match self {
            Self::Random if config.train.freeze.is_empty() => return Ok(random()?),
            Self::Random => {
                let random = random()?;
                let weights = random.weights().iter();
                let named = |weight: &Weight| (weight.name().to_string(), weight.value().detach());
                weights.map(named).collect()
            }
            Self::From(init) => {
                init.report_differences(config);
                init.weights(&*random()?, tokenizers)?
            }
            Self::Checkpoint(weights) => {
                let shapes = weights.iter();
                let shapes = shapes.map(|(name, tensor)| (name.clone(), tensor.dims().to_vec()));
                let fits = config.model.check_weights(vocabularies, &shapes.collect());
                fits.map_err(|error| other_model(config, error.to_string()))?;
                weights
            }
        };
        freeze.check(weights.keys().map(String::as_str))?;
        let load = &mut |name: &str| match weights.get(name) {
            Some(tensor) => Ok(tensor.clone()),
            None => candle_core::bail!("no tensor `{name}`"),
        };
        let frozen = |name: &str| freeze.covers(name);
        Ok(config
            .model
            .build_from(vocabularies, device, load, &frozen)?)
    }
}

/// The error of a checkpoint that is not damaged, so that it is the config that has changed.
fn other_model(config: &Config, problem: String) -> Error {
    Error::OtherModel {
        folder: config.out.clone(),
        problem,
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
