//! One update of the parameters: its batches, its checks and its report.

use attend_data::Batch;
use attend_infer::run::{Event, LogWindow, Skipped, Spike, Step};
use attend_model::{Loss, Pass, Words};

use crate::{Error, Result, Run, health, ranks};

/// What one update of the parameters is computed from.
pub struct Update {
    /// Computed one after another by this rank. Their gradients are summed.
    pub batches: Vec<MicroBatch>,
    /// The pairs of all ranks.
    pairs: Vec<usize>,
    /// Target tokens of all ranks.
    pub tokens: usize,
    /// Smoothed cross-entropy, summed over the tokens that this rank has computed so far; in the end over all.
    pub loss: f64,
    /// How far two passes differ, in the same way.
    divergence: f64,
    /// The epoch of the first batch.
    pub epoch: u64,
    /// The norm of the gradient, once it is known.
    pub norm: f64,
}

pub struct MicroBatch {
    pub batch: Batch,
    /// The number of the whole batch's random draw.
    draw: u64,
}

impl Update {
    /// Per token.
    fn mean_loss(&self) -> f64 {
        self.loss / self.tokens as f64
    }
}

impl Run {
    /// The batches of the next update: `accumulate` of them, or fewer at the end of the last epoch. A batch that
    /// does not fit into memory is given in parts.
    pub fn next_update(&mut self) -> Result<Update> {
        self.judge
            .retract_unsaved(&mut self.state, self.saver.saved());
        let mut update = Update {
            batches: Vec::new(),
            pairs: Vec::new(),
            tokens: 0,
            loss: 0.0,
            divergence: 0.0,
            epoch: self.state.position.epoch,
            norm: f64::NAN,
        };
        let accumulate = self.config.train.accumulate as u64;
        for micro in 0..accumulate {
            let next = self.batcher.next_batch(self.state.step)?;
            let draw = self.state.step * accumulate + micro;
            let parts = next.parts.into_iter();
            update
                .batches
                .extend(parts.map(|batch| MicroBatch { batch, draw }));
            update.pairs.extend(next.pairs);
            update.tokens += next.tokens;
            self.state.position = next.position;
            let epochs = self.config.train.epochs;
            if epochs.is_some_and(|epochs| next.position.epoch >= epochs) {
                break;
            }
        }
        Ok(update)
    }

    /// The summed loss of one batch.
    pub fn forward(&mut self, update: &mut Update, micro: usize) -> Result<Loss> {
        let MicroBatch { batch, draw } = &update.batches[micro];
        let train = &self.config.train;
        let (model, smoothing) = (&*self.model, train.label_smoothing);
        let words = Words {
            dropped: train.word_dropout,
            cut: None,
        };
        let pass = Pass::train(self.compute.kernels, self.config.seed, *draw).without(words);
        let loss = match &train.consistency {
            Some(consistency) => consistency.loss(model, batch, smoothing, &pass)?,
            None => {
                let memory = model.encode(&batch.source, &pass)?;
                let output = model.decode(&memory, &batch.target, &pass)?;
                model.loss(&output, &batch.target, smoothing, &pass)?
            }
        };
        update.loss += f64::from(loss.smoothed()?);
        update.divergence += loss.divergence;
        Ok(loss)
    }

    /// Updates the parameters from the gradients of all ranks. A non-finite update is skipped; too many of them in a
    /// row are an error.
    pub fn update(&mut self, update: &mut Update) -> Result<()> {
        let step = self.state.step + 1;
        let mut sums = [update.loss, update.divergence];
        self.compute.comm.sum_f64(&mut sums)?;
        [update.loss, update.divergence] = sums;
        update.norm = self.optimizer.norm()?;
        if update.loss.is_finite() && update.norm.is_finite() {
            let (train, rate) = (&self.config.train, self.learning_rate(step));
            let done = step - self.state.health.skipped;
            self.optimizer.step(train, done, rate, update.norm)?;
            self.state.step = step;
            self.check_drift()?;
            return self.report_spike(update);
        }
        self.optimizer.skip();
        self.state.step = step;
        health::record_skip(&mut self.state.health, update.norm);
        self.report_skip(update)
    }

    /// Reports a spike of the loss.
    fn report_spike(&mut self, update: &Update) -> Result<()> {
        let (loss, spike) = (update.mean_loss(), self.config.train.spike);
        match health::record_update(&mut self.state.health, loss, update.norm, spike) {
            None => Ok(()),
            Some(average) => self.log.event(&Event::Spike(Spike {
                step: self.state.step,
                loss,
                average,
                pairs: self.batcher.numbers(&update.pairs),
            })),
        }
    }

    /// Reports a skipped update; an error if too many were skipped in a row.
    fn report_skip(&mut self, update: &Update) -> Result<()> {
        let (step, in_a_row) = (self.state.step, self.state.health.in_a_row);
        let (loss, norm) = (update.mean_loss(), update.norm);
        self.log.event(&Event::Skipped(Skipped {
            step,
            in_a_row,
            loss,
            gradient_norm: norm,
            pairs: self.batcher.numbers(&update.pairs),
        }))?;
        if in_a_row < self.config.train.max_skipped {
            return Ok(());
        }
        Err(Error::Diverged {
            step,
            in_a_row,
            loss,
            norm,
            history: health::norm_history(&self.state.health),
            pairs: self.batcher.origins(&update.pairs),
            saved: self.saver.saved().unwrap_or_default(),
        })
    }

    fn learning_rate(&self, step: u64) -> f64 {
        let train = &self.config.train;
        let width = self.config.model.width();
        train.schedule.rate(step, train.steps, width)
    }

    /// Counts an update, and writes a line of the log when one is due.
    pub fn report(&mut self, update: &Update) -> Result<()> {
        // All ranks count the same time, since it may end the training.
        let seconds = ranks::of_first(self.clock.lap(), &*self.compute.comm)?;
        let (step, tokens) = (self.state.step, update.tokens as u64);
        self.state.seconds += seconds;
        self.state.tokens += tokens;
        let window = &mut self.state.log_window;
        window.seconds += seconds;
        self.log.advance(step);
        if self.state.health.in_a_row > 0 {
            return Ok(()); // a skipped update has its own line
        }
        window.tokens += tokens;
        window.loss += update.loss;
        window.divergence += update.divergence;
        if !step.is_multiple_of(self.config.train.log_every) {
            return Ok(());
        }
        let LogWindow {
            loss,
            divergence,
            tokens,
            seconds,
        } = self.state.log_window;
        self.saver.check_folder()?;
        self.log.event(&Event::Step(Step {
            step,
            epoch: update.epoch + 1,
            loss: loss / tokens as f64,
            label_smoothing: self.config.train.label_smoothing,
            divergence: (self.config.train.consistency.as_ref())
                .map(|_| divergence / tokens as f64),
            learning_rate: self.learning_rate(step),
            gradient_norm: update.norm,
            tokens,
            tokens_per_second: tokens as f64 / seconds.max(1e-9),
            seconds: self.state.seconds,
        }))?;
        self.state.log_window = LogWindow::default();
        Ok(())
    }
}
