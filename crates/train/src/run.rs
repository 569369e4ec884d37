use std::time::Instant;

use attend_infer::run::{Event, Link, TestScores, TrainerState};
use attend_infer::{Bundle, Translator};
use attend_model::{Packing, Seq2Seq};
use attend_ops::profile;

use crate::batcher::Batcher;
use crate::compute::Compute;
use crate::config::Config;
use crate::corpora::Corpora;
use crate::judge::Judge;
use crate::log::Log;
use crate::optimizer::Optimizer;
use crate::saver::{Saver, Snapshot};
use crate::validate::Translated;
use crate::{Ending, Result, Stop, ranks, write_report};

/// A training in progress: everything that the loop uses.
pub struct Run {
    pub config: Config,
    pub model: Box<dyn Seq2Seq>,
    pub state: TrainerState,
    pub(crate) compute: Compute,
    pub(crate) batcher: Batcher,
    pub(crate) optimizer: Optimizer,
    pub(crate) judge: Judge,
    pub(crate) saver: Saver,
    pub(crate) log: Log,
    pub(crate) clock: Clock,
}

/// Measures the time of training, without validating and saving.
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// The seconds since the start or the last lap.
    pub(crate) fn lap(&mut self) -> f64 {
        let lap = self.0.elapsed().as_secs_f64();
        *self = Self::start();
        lap
    }
}

impl Run {
    /// Why training ends here, if it does, on all ranks.
    pub fn ending(&self, stop: &Stop) -> Result<Option<Ending>> {
        let ending = match stop.status() {
            Some(status) => Some(Ending::Signal(status)),
            None if self.at_limit() => Some(Ending::Limit),
            None if self.judge.is_out_of_patience(&self.state) => Some(Ending::Patience),
            None => None,
        };
        ranks::agreed_ending(ending, &*self.compute.comm)
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

    /// Validates if a signal interrupted that, before this process was started.
    pub fn complete_validation(&mut self, stop: &Stop) -> Result<()> {
        if self.state.validation_interrupted && self.validate(stop)? {
            self.saver.forget_last(); // the checkpoint does not know yet that it is the best
            self.save_or_warn()?;
        }
        Ok(())
    }

    /// Measures the model on the validation set. Returns whether it is the best so far. A signal interrupts it,
    /// and then it is done again when the run is resumed.
    pub fn validate(&mut self, stop: &Stop) -> Result<bool> {
        let Some(validator) = self.judge.validator() else {
            return Ok(false);
        };
        let (model, step) = (&*self.model, self.state.step);
        let validate = || validator.validate(model, step, &self.compute, stop);
        let validated = profile::paused(|| self.optimizer.with_average(validate))?;
        self.state.validation_interrupted = validated.is_none();
        let Some(mut validation) = validated else {
            return Ok(false);
        };
        validation.best = self.judge.record(&validation, &mut self.state);
        let (best, samples) = (validation.best, validation.samples.clone());
        self.log.event(&Event::Validation(validation))?;
        for sample in samples {
            for (what, text) in [
                ("source     ", sample.source),
                ("reference  ", sample.reference),
                ("translation", sample.translation),
            ] {
                self.log.print(&format!("  {what}  {text}"));
            }
        }
        self.clock = Clock::start();
        Ok(best)
    }

    /// Writes a checkpoint of this step, once.
    pub fn save(&mut self) -> Result<()> {
        self.save_with(Saver::save)
    }

    /// The same, but a checkpoint that cannot be written is only reported, if the config says so.
    pub fn save_or_warn(&mut self) -> Result<()> {
        self.save_with(Saver::save_or_warn)
    }

    fn save_with(
        &mut self,
        save: impl Fn(&mut Saver, &Snapshot, &mut Log) -> Result<()>,
    ) -> Result<()> {
        let snapshot = Snapshot {
            config: &self.config,
            state: &self.state,
            optimizer: &self.optimizer,
            compute: &self.compute,
        };
        let saved = save(&mut self.saver, &snapshot, &mut self.log);
        self.clock = Clock::start();
        saved
    }

    /// Writes the last checkpoint.
    pub fn finish(&mut self) -> Result<()> {
        self.save()?;
        self.log.finish();
        Ok(())
    }

    /// Translates the test set with the best checkpoint (the last, if nothing was validated). `None`
    /// if the config has no test set.
    pub fn test(&mut self) -> Result<Option<Translated>> {
        let Some(test) = Corpora::find(&self.config)?.test_set()? else {
            return Ok(None);
        };
        let (step, bundle) = self.open_best()?;
        // The config's own decode settings, which may be newer than the checkpoint's.
        let decode = &self.config.decode;
        let kernels = self.compute.kernels;
        let translator = Translator::new(&*bundle.model, &bundle.tokenizers, decode, kernels);
        let bar = attend_cli::bar(Some(test.len() as u64));
        let advance = |lines: usize| bar.advance(lines as u64);
        let translated = Translated::new(
            &translator.observed_by(&advance),
            &test.source,
            &test.target,
            &*self.compute.comm,
        )?;
        self.log.event(&Event::Test(TestScores {
            step,
            bleu: translated.bleu.score,
            bleu_signature: translated.bleu.signature.clone(),
            chrf: translated.chrf.score,
            chrf_signature: translated.chrf.signature.clone(),
        }))?;
        Ok(Some(translated))
    }

    /// Writes `report.html`, to be called at the end.
    pub fn write_report(&self) -> Result<()> {
        let (device, kernels) = (&self.compute.device, self.compute.kernels);
        write_report(self.saver.folder().path(), None, device, kernels).map(drop)
    }

    /// The model of the best checkpoint, or of the last one, and its step. If the best so far was
    /// forgotten on resuming, that is still the checkpoint that `best` leads to.
    fn open_best(&self) -> Result<(u64, Bundle)> {
        let open = |step: u64| {
            let folder = self.saver.folder().checkpoint_path(step);
            let (device, kernels) = (&self.compute.device, self.compute.kernels);
            let bundle = Bundle::open_to_translate(&folder, device, kernels, Packing::Float)?;
            Result::Ok((step, bundle))
        };
        let last = self.state.step;
        let best = self.state.best.map(|best| best.step);
        let best = best.or_else(|| self.saver.folder().linked_step(Link::Best));
        let best = best.unwrap_or(last);
        match open(best) {
            Err(error) if best != last => {
                tracing::warn!("{error}; testing the last checkpoint instead of the best");
                open(last)
            }
            opened => opened,
        }
    }
}

fn due(step: u64, every: u64) -> bool {
    every > 0 && step.is_multiple_of(every)
}
