use std::collections::HashMap;
use std::time::Instant;

use attend_data::{Batches, Tokenizers};
use attend_infer::Bundle;
use attend_model::{Path, Seq2Seq, Vocabularies};
use attend_ops::{norm_of_all, profile};
use candle_core::{Device, Tensor};

use crate::checkpoint::{Best, Checkpoints, Content, State};
use crate::config::{Config, Metric, OnSaveError};
use crate::log::{Event, Log, Scores, Validation};
use crate::open::corpus;
use crate::optimizer::Optimizer;
use crate::provenance::Provenance;
use crate::room::Room;
use crate::storage::Lock;
use crate::validate::{Translated, Validator};
use crate::{Ending, Error, Result, Stop};

/// A training under way: everything that the loop touches.
pub struct Run {
    pub config: Config,
    pub model: Box<dyn Seq2Seq>,
    pub state: State,
    pub(crate) device: Device,
    pub(crate) path: Path,
    pub(crate) tokenizers: Tokenizers,
    pub(crate) vocabularies: Vocabularies,
    pub(crate) batches: Batches,
    pub(crate) optimizer: Optimizer,
    pub(crate) validator: Option<Validator>,
    pub(crate) checkpoints: Checkpoints,
    /// The step of the last checkpoint.
    pub(crate) saved: Option<u64>,
    pub(crate) log: Log,
    pub(crate) clock: Clock,
    /// How things stood before the last validation that was the best.
    pub(crate) before_best: Standing,
    pub(crate) provenance: Provenance,
    pub(crate) room: Room,
    pub(crate) _lock: Lock,
}

/// The best validation, and the validations since.
pub(crate) type Standing = (Option<Best>, u64);

/// Times training; validating and saving do not count.
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn now() -> Self {
        Self(Instant::now())
    }

    /// The seconds since the last lap, or since training went on.
    pub(crate) fn lap(&mut self) -> f64 {
        let lap = self.0.elapsed().as_secs_f64();
        *self = Self::now();
        lap
    }
}

impl Run {
    /// Why training ends here, if it does.
    pub fn ending(&self, stop: &Stop) -> Option<Ending> {
        let waited = self.state.without_improvement;
        let patience = self
            .config
            .train
            .patience
            .is_some_and(|limit| waited >= limit);
        match stop.status() {
            Some(status) => Some(Ending::Signal(status)),
            None if self.at_limit() => Some(Ending::Limit),
            None if patience => Some(Ending::Patience),
            None => None,
        }
    }

    fn at_limit(&self) -> bool {
        let (train, state) = (&self.config.train, &self.state);
        state.step >= train.steps
            || train
                .epochs
                .is_some_and(|epochs| state.position.epoch >= epochs)
            || train
                .minutes
                .is_some_and(|minutes| state.seconds >= 60.0 * minutes)
    }

    /// At intervals, and at the end.
    pub fn validation_due(&self) -> bool {
        due(self.state.step, self.config.train.validate_every) || self.at_limit()
    }

    pub fn save_due(&self) -> bool {
        due(self.state.step, self.config.train.save_every)
    }

    /// Measures the model on the validation set; says whether it is the best so far.
    pub fn validate(&mut self) -> Result<bool> {
        let Some(validator) = &self.validator else {
            return Ok(false);
        };
        let (model, path, step) = (&*self.model, self.path, self.state.step);
        let measure = || {
            let validation = validator.measure(model, step, path)?;
            let translated = validator.translate(model, &self.tokenizers, path)?;
            Ok((validation, translated))
        };
        let (mut validation, translated) =
            profile::paused(|| self.optimizer.with_average(measure))?;
        validation.bleu = translated.as_ref().map(|translated| translated.bleu.score);
        validation.chrf = translated.as_ref().map(|translated| translated.chrf.score);
        validation.best = self.judge(&validation);
        self.log.event(&Event::Validation(validation.clone()))?;
        if let Some(translated) = translated {
            self.show(&translated);
        }
        self.clock = Clock::now();
        Ok(validation.best)
    }

    /// Remembers a validation if it is the best so far.
    fn judge(&mut self, validation: &Validation) -> bool {
        let value = match self.config.train.metric {
            Metric::Loss => -validation.loss,
            Metric::Bleu => validation.bleu.unwrap_or(0.0),
            Metric::Chrf => validation.chrf.unwrap_or(0.0),
        };
        let better = value.is_finite() && self.state.best.is_none_or(|best| value > best.value);
        if better {
            self.before_best = (self.state.best, self.state.without_improvement);
            self.state.best = Some(Best {
                step: validation.step,
                value,
            });
            self.state.without_improvement = 0;
        } else {
            self.state.without_improvement += 1;
        }
        better
    }

    fn show(&self, translated: &Translated) {
        for sample in translated.lines.iter().take(self.config.train.samples) {
            self.log.say(&format!("  source       {}", sample.source));
            self.log
                .say(&format!("  reference    {}", sample.reference));
            self.log
                .say(&format!("  translation  {}", sample.translation));
        }
    }

    /// Writes a checkpoint of this step, once.
    pub fn save(&mut self) -> Result<()> {
        let step = self.state.step;
        if self.saved == Some(step) {
            return Ok(());
        }
        let Config {
            model,
            decode,
            train,
            ..
        } = &self.config;
        let (parameters, optimizer) = (self.optimizer.parameters(), self.optimizer.state());
        let tensors = parameters.values().chain(optimizer.values());
        if !profile::paused(|| norm_of_all(tensors, self.path))?.is_finite() {
            return Err(Error::NotFinite { step });
        }
        let bundle = Bundle::files(
            model,
            self.vocabularies,
            &self.tokenizers,
            decode,
            &parameters,
        )?;
        self.log.sync()?; // what it says of the steps before this one
        let content = Content {
            state: &self.state,
            provenance: &self.provenance,
            config: &self.config,
            bundle,
            optimizer: &optimizer,
        };
        self.checkpoints.write(content)?;
        self.saved = Some(step);
        // What is safe stays safe if this fails; the next checkpoint tries again.
        if let Err(error) = self.checkpoints.settle(&self.state, train.keep) {
            self.log.say(&format!("warning: {error}"));
        }
        self.clock = Clock::now();
        Ok(())
    }

    /// The same; what cannot be written now is tried again at the next interval, if the config says so.
    pub fn save_or_warn(&mut self) -> Result<()> {
        match (self.save(), self.config.train.on_save_error) {
            (Err(error @ Error::Write { .. }), OnSaveError::Warn) => {
                let text = format!(
                    "warning: no checkpoint of step {}: {error}",
                    self.state.step
                );
                self.log.say(&text);
                self.clock = Clock::now();
                Ok(())
            }
            (result, _) => result,
        }
    }

    /// Before the parameters change: a best that could not be saved is gone, and counts as none.
    pub(crate) fn forget_unsaved_best(&mut self) {
        let unsaved = |best: Best| best.step == self.state.step && self.saved != Some(best.step);
        if self.state.best.is_some_and(unsaved) {
            let (best, without_improvement) = self.before_best;
            self.state.best = best;
            self.state.without_improvement = without_improvement + 1;
        }
    }

    /// The last checkpoint.
    pub fn finish(&mut self) -> Result<()> {
        self.save()?;
        self.log.finish();
        Ok(())
    }

    /// Translates the test set with the best checkpoint (the last, if nothing was validated).
    pub fn test(&mut self) -> Result<Option<Translated>> {
        let Some(test) = corpus(&self.config, self.config.data.test.as_ref())? else {
            return Ok(None);
        };
        let best = self.state.best.map_or(self.state.step, |best| best.step);
        let (step, parameters) = match self.parameters_of(best) {
            Err(error) if best != self.state.step => {
                tracing::warn!("{error}; the last checkpoint is tested, not the best");
                (self.state.step, self.parameters_of(self.state.step)?)
            }
            parameters => (best, parameters?),
        };
        let loaded = self.model.params().load(&parameters);
        loaded.map_err(|error| Error::Damaged {
            path: self.config.out.join(format!("checkpoint-{step}")),
            problem: error.to_string(),
        })?;
        let validator = Validator::new(test, &self.tokenizers, &self.config)?;
        let translated = validator.translate_all(&*self.model, &self.tokenizers, self.path)?;
        self.log.event(&Event::Test(Scores {
            step,
            bleu: translated.bleu.score,
            bleu_signature: translated.bleu.signature.clone(),
            chrf: translated.chrf.score,
            chrf_signature: translated.chrf.signature.clone(),
        }))?;
        Ok(Some(translated))
    }

    fn parameters_of(&self, step: u64) -> Result<HashMap<String, Tensor>> {
        self.checkpoints.read(step)?.parameters(&self.device)
    }
}

fn due(step: u64, every: u64) -> bool {
    every > 0 && step.is_multiple_of(every)
}
