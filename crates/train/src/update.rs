//! One update of the parameters: which batches, what if it goes wrong, what is said of it.

use attend_data::{Batch, Sentences};
use attend_model::{Loss, Packed, Pass};

use crate::checkpoint::Unlogged;
use crate::log::{Event, Skipped, Spike, Step, some};
use crate::{Error, Result, Run};

/// What one update of the parameters is computed from.
pub struct Update {
    /// Computed one after another; their gradients add up.
    pub batches: Vec<MicroBatch>,
    /// Target tokens of all.
    pub tokens: usize,
    /// Smoothed cross-entropy, summed over the tokens computed so far.
    pub loss: f64,
    /// The epoch of the first batch.
    pub epoch: u64,
    /// The norm of the gradient, once it is known.
    pub norm: f64,
}

pub struct MicroBatch {
    pub batch: Batch,
    /// Its random numbers.
    draw: u64,
}

impl Update {
    /// Pairs of the training data, counted from 1.
    fn pairs(&self) -> Vec<usize> {
        let batches = self.batches.iter();
        let pairs = batches.flat_map(|micro| micro.batch.pairs.iter());
        pairs.map(|pair| pair + 1).collect()
    }

    /// Per token.
    fn mean_loss(&self) -> f64 {
        self.loss / self.tokens as f64
    }
}

/// Parts of a batch draw from streams this far apart (a power of two), which no training reaches.
const PART: u32 = 44;

impl Run {
    /// The batches of the next update: `accumulate` of them, or fewer at the last epoch's end; those
    /// without room in parts.
    pub fn next_update(&mut self) -> Update {
        self.forget_unsaved_best();
        let mut update = Update {
            batches: Vec::new(),
            tokens: 0,
            loss: 0.0,
            epoch: self.state.position.epoch,
            norm: f64::NAN,
        };
        let accumulate = self.config.train.accumulate as u64;
        for micro in 0..accumulate {
            let (batch, position) = self.batches.next_batch();
            update.tokens += batch.target.ids.len();
            let draw = self.state.step * accumulate + micro;
            let parts = self.room.parts(batch).into_iter().enumerate();
            update.batches.extend(parts.map(|(part, batch)| MicroBatch {
                batch,
                draw: draw + ((part as u64) << PART),
            }));
            self.state.position = position;
            let epochs = self.config.train.epochs;
            if epochs.is_some_and(|epochs| position.epoch >= epochs) {
                break;
            }
        }
        update
    }

    /// The summed loss of one batch.
    pub fn forward(&mut self, update: &mut Update, micro: usize) -> Result<Loss> {
        let MicroBatch { batch, draw } = &update.batches[micro];
        let pass = Pass::train(self.path, self.config.seed, *draw);
        let pack = |side: &Sentences| Packed::new(side.ids.clone(), side.lengths.iter().copied());
        let (source, target) = (pack(&batch.source), pack(&batch.target));
        let memory = self.model.encode(&source, &pass)?;
        let output = self.model.decode(&memory, &target, &pass)?;
        let smoothing = self.config.train.label_smoothing;
        let loss = self.model.loss(&output, &target, smoothing, &pass)?;
        update.loss += f64::from(loss.smoothed()?);
        Ok(loss)
    }

    /// Updates the parameters from their gradients, if all is finite; else leaves the update out, and
    /// gives up when that has been so too often.
    pub fn update(&mut self, update: &mut Update) -> Result<()> {
        let step = self.state.step + 1;
        update.norm = self.optimizer.norm()?;
        if update.loss.is_finite() && update.norm.is_finite() {
            let (train, rate) = (&self.config.train, self.learning_rate(step));
            let done = step - self.state.health.skipped;
            self.optimizer.step(train, done, rate, update.norm)?;
            self.state.step = step;
            return self.note(update);
        }
        self.optimizer.skip();
        self.state.step = step;
        self.state.health.skip(update.norm);
        self.left_out(update)
    }

    /// Says so if a loss stands out.
    fn note(&mut self, update: &Update) -> Result<()> {
        let (loss, spike) = (update.mean_loss(), self.config.train.spike);
        match self.state.health.done(loss, update.norm, spike) {
            None => Ok(()),
            Some(average) => self.log.event(&Event::Spike(Spike {
                step: self.state.step,
                loss,
                average,
                pairs: update.pairs(),
            })),
        }
    }

    /// Says that an update was left out, or that it was one too many.
    fn left_out(&mut self, update: &Update) -> Result<()> {
        let (step, health) = (self.state.step, &self.state.health);
        let (loss, norm, in_a_row) = (update.mean_loss(), update.norm, health.in_a_row);
        let history = health.history();
        self.log.event(&Event::Skipped(Skipped {
            step,
            in_a_row,
            loss,
            gradient_norm: norm,
            pairs: update.pairs(),
        }))?;
        if in_a_row < self.config.train.max_skipped {
            return Ok(());
        }
        Err(Error::Diverged {
            step,
            in_a_row,
            loss,
            norm,
            history,
            pairs: some(&update.pairs()),
            saved: self.saved.unwrap_or_default(),
        })
    }

    fn learning_rate(&self, step: u64) -> f64 {
        let train = &self.config.train;
        let width = self.config.model.width();
        train.schedule.rate(step, train.steps, width)
    }

    /// Counts an update, and writes a line of the log when one is due.
    pub fn report(&mut self, update: &Update) -> Result<()> {
        let seconds = self.clock.lap();
        let (step, tokens) = (self.state.step, update.tokens as u64);
        self.state.seconds += seconds;
        self.state.tokens += tokens;
        let unlogged = &mut self.state.unlogged;
        unlogged.seconds += seconds;
        self.log.advance(step);
        if self.state.health.in_a_row > 0 {
            return Ok(()); // it has been said that nothing was learnt
        }
        unlogged.tokens += tokens;
        unlogged.loss += update.loss;
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
            epoch: update.epoch,
            loss: loss / tokens as f64,
            learning_rate: self.learning_rate(step),
            gradient_norm: update.norm,
            tokens,
            tokens_per_second: tokens as f64 / seconds.max(1e-9),
            seconds: self.state.seconds,
        }))?;
        self.state.unlogged = Unlogged::default();
        Ok(())
    }
}
