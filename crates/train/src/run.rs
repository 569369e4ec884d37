use std::time::Instant;

use attend_data::{Batch, Batches, Tokenizers};
use attend_infer::Bundle;
use attend_model::{Loss, ModelConfig, Packed, Pass, Path, Seq2Seq, Vocabularies};
use attend_ops::{norm_of_all, profile};
use candle_core::Device;

use crate::checkpoint::{Best, Checkpoints, State, Unlogged};
use crate::config::{Config, Metric};
use crate::log::{Event, Log, Scores, Step, Validation};
use crate::open::corpus;
use crate::optimizer::Optimizer;
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
    /// The epoch of the last update's first batch.
    pub(crate) epoch: u64,
}

/// Times training; validating and saving do not count.
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn now() -> Self {
        Self(Instant::now())
    }

    /// The seconds since the last lap, or since training went on.
    fn lap(&mut self) -> f64 {
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

    /// The batches of the next update; fewer than `accumulate` at the last epoch's end.
    pub fn next_update(&mut self) -> Vec<Batch> {
        let mut batches = Vec::new();
        self.epoch = self.state.position.epoch;
        for _ in 0..self.config.train.accumulate {
            let (batch, position) = self.batches.next_batch();
            batches.push(batch);
            self.state.position = position;
            let epochs = self.config.train.epochs;
            if epochs.is_some_and(|epochs| position.epoch >= epochs) {
                break;
            }
        }
        batches
    }

    /// The summed loss of one batch, the `micro`th of its update.
    pub fn forward(&mut self, batch: &Batch, micro: usize) -> Result<Loss> {
        let draw = self.state.step * self.config.train.accumulate as u64 + micro as u64;
        let pass = Pass::train(self.path, self.config.seed, draw);
        let source = Packed::new(
            batch.source.ids.clone(),
            batch.source.lengths.iter().copied(),
        );
        let target = Packed::new(
            batch.target.ids.clone(),
            batch.target.lengths.iter().copied(),
        );
        let memory = self.model.encode(&source, &pass)?;
        let hidden = self.model.decode(&memory, &target, &pass)?;
        let smoothing = self.config.train.label_smoothing;
        let loss = self.model.loss(&hidden, &target, smoothing, &pass)?;
        self.state.unlogged.loss += f64::from(loss.smoothed()?);
        Ok(loss)
    }

    /// Updates the parameters from their gradients; returns the gradients' norm.
    pub fn update(&mut self) -> Result<f64> {
        let step = self.state.step + 1;
        let rate = self.learning_rate(step);
        let norm = self.optimizer.step(&self.config.train, step, rate)?;
        self.state.step = step;
        Ok(norm)
    }

    fn learning_rate(&self, step: u64) -> f64 {
        let ModelConfig::Transformer(model) = &self.config.model;
        let train = &self.config.train;
        train.schedule.rate(step, train.steps, model.d_model)
    }

    /// Counts an update, and writes a line of the log when one is due.
    pub fn report(&mut self, tokens: usize, norm: f64) -> Result<()> {
        let seconds = self.clock.lap();
        self.state.seconds += seconds;
        self.state.tokens += tokens as u64;
        self.state.unlogged.seconds += seconds;
        self.state.unlogged.tokens += tokens as u64;
        let step = self.state.step;
        self.log.advance(step);
        if !step.is_multiple_of(self.config.train.log_every) {
            return Ok(());
        }
        let Unlogged {
            loss,
            tokens,
            seconds,
        } = self.state.unlogged;
        self.log.event(&Event::Step(Step {
            step,
            epoch: self.epoch,
            loss: loss / tokens as f64,
            learning_rate: self.learning_rate(step),
            gradient_norm: norm,
            tokens,
            tokens_per_second: tokens as f64 / seconds.max(1e-9),
            seconds: self.state.seconds,
        }))?;
        self.state.unlogged = Unlogged::default();
        Ok(())
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
        if self.saved == Some(self.state.step) {
            return Ok(());
        }
        let Config {
            model,
            decode,
            train,
            ..
        } = &self.config;
        let parameters = self.optimizer.parameters();
        if !profile::paused(|| norm_of_all(parameters.values(), self.path))?.is_finite() {
            return Err(Error::NotFinite {
                step: self.state.step,
            });
        }
        let bundle = Bundle::files(
            model,
            self.vocabularies,
            &self.tokenizers,
            decode,
            &parameters,
        )?;
        self.checkpoints
            .save(&self.state, bundle, &self.optimizer.state(), train.keep)?;
        self.saved = Some(self.state.step);
        self.clock = Clock::now();
        Ok(())
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
        let step = self.state.best.map_or(self.state.step, |best| best.step);
        let parameters = self.checkpoints.read(step)?.parameters(&self.device)?;
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
}

fn due(step: u64, every: u64) -> bool {
    every > 0 && step.is_multiple_of(every)
}
