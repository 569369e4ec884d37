use std::ops::Range;

use attend_batch::Segments;
use attend_ops::{
    Cell, Direction, DropoutSite, Linear, Mask, Pass, Shared, beside, cell, dropout, linear,
    recurrence,
};
use candle_core::{Result, Tensor};

use super::alignment::Alignment;
use super::attention_config::{AttentionChoice, AttentionOrder};
use super::config::{ContextSteps, RecurrentConfig};
use super::cross_attention::CrossAttention;
use super::encoded::Encoded;
use super::schedule::Schedule;
use super::step_output::StepOutput;
use super::summary::{Seen, Summary};
use super::{gates, recurrent};
use crate::attention::{KeysValues, Scope};
use crate::weights::Init;

/// Recurrent layers that step from token to token, and their attention to the source.
pub(crate) struct Decoder {
    cell: Cell,
    layers: Vec<Layer>,
    pub(crate) attention: Option<CrossAttention>,
    /// Without attention only.
    summary: Option<Summary>,
    width: usize,
}

struct Layer {
    input: Linear,
    /// Of an LSTM into which something is fed: `[4h, h + h]`, first what is fed, then the state.
    recurrent: Linear,
    /// Of a GRU into which something is fed, whose candidate needs the two apart.
    feed: Option<Linear>,
    drop: DropoutSite,
}

/// The decoder's output under teacher forcing.
pub(super) struct Decoded {
    /// `[n, h]`
    pub(super) hidden: Tensor,
    pub(super) alignment: Option<Alignment>,
}

/// The input of a step.
pub(super) struct StepInput<'a> {
    /// The input side of the lowest layer's gates, from [`Decoder::input`].
    pub(super) gates: &'a Shared,
    /// Its rows that belong to this step.
    pub(super) rows: Range<usize>,
}

impl Decoder {
    pub(crate) fn new(config: &RecurrentConfig, init: &mut Init) -> Result<Self> {
        let (e, h) = (config.d_embed, config.d_hidden);
        let cell = Cell::from(config.cell);
        let attention = match &config.attention {
            AttentionChoice::None => None,
            AttentionChoice::Some(attention) => Some(CrossAttention::new(attention, e, h, init)?),
        };
        let fed = attention.as_ref().is_some_and(CrossAttention::is_fed);
        let mut layers = Vec::new();
        for n in 0..config.decoder_layers {
            let name = format!("model.decoder.layers.{n}");
            let fed = fed && n == 0;
            let (inputs, dropout) = if n == 0 {
                (e, 0.0)
            } else {
                (h, config.dropout)
            };
            let wide = fed && cell == Cell::Lstm;
            layers.push(Layer {
                input: gates(cell, &name, inputs, h, init)?,
                recurrent: recurrent(cell, &name, if wide { h + h } else { h }, h, init)?,
                feed: (fed && !wide)
                    .then(|| init.matrix(&format!("{name}.feed"), h, cell.gates() * h))
                    .transpose()?,
                drop: DropoutSite::new(dropout, &name),
            });
        }
        let summary = match config.context {
            ContextSteps::First => None,
            ContextSteps::Every => Some(Summary::new(cell, e, h, init)?),
        };
        Ok(Self {
            cell,
            layers,
            attention,
            summary,
            width: h,
        })
    }

    /// The keys and values of the source, `[m, h]` each; nothing if there is no attention.
    pub(super) fn source_keys_values(&self, memory: &Encoded, pass: &Pass) -> Result<Vec<Tensor>> {
        match &self.attention {
            None => Ok(Vec::new()),
            Some(cross) => {
                let keys = cross.attention.score.keys(&memory.states, pass)?;
                Ok(vec![keys, memory.states.clone()])
            }
        }
    }

    /// The state before the first token: that of every layer `[b, S]`, and what is fed in at first, or at every
    /// step.
    pub(super) fn start(&self, memory: &Encoded, pass: &Pass) -> Result<Vec<Tensor>> {
        let (finals, count) = (&memory.finals, self.layers.len());
        // From the encoder's highest layers; from the highest of all if it has fewer.
        let first = finals.len().saturating_sub(count);
        let own = (first..first + count).map(|n| finals[n.min(finals.len() - 1)].clone());
        let mut own: Vec<Tensor> = own.collect();
        if self.attention.as_ref().is_some_and(|cross| cross.feeds) {
            let nothing = (memory.segments.count(), self.width);
            own.push(Tensor::zeros(nothing, own[0].dtype(), own[0].device())?);
        }
        if let Some(summary) = &self.summary {
            let Seen { summary, gates } = summary.of(memory, pass)?;
            own.extend([summary, gates]);
        }
        Ok(own)
    }

    /// The summary that every step sees, if it does, from the state of [`Decoder::start`].
    fn seen(&self, own: &[Tensor]) -> Option<Seen> {
        self.summary.as_ref()?;
        let [summary, gates] = own.last_chunk()?.clone();
        Some(Seen { summary, gates })
    }

    /// The input side of the lowest layer's gates, of all steps at once.
    pub(crate) fn input(&self, x: &Tensor, pass: &Pass) -> Result<Shared> {
        Shared::new(&linear(x, &[&self.layers[0].input], pass)?, pass)
    }

    /// The same of one step from this state.
    pub(super) fn step_input(&self, x: &Tensor, own: &[Tensor], pass: &Pass) -> Result<Shared> {
        let Some(seen) = self.seen(own) else {
            return self.input(x, pass);
        };
        let input = linear(x, &[&self.layers[0].input], pass)?;
        Shared::new(&(input + seen.gates)?, pass)
    }

    /// One more token for each row of the state.
    pub(super) fn step(
        &self,
        own: &mut Vec<Tensor>,
        input: StepInput,
        over: Option<&KeysValues>,
        scope: &Scope,
        pass: &Pass,
    ) -> Result<StepOutput> {
        let highest = self.layers.len() - 1;
        let Some((cross, over)) = self.attention.as_ref().zip(over) else {
            self.step_cells(own, input, None, scope, pass)?;
            let top = self.output_of(&own[highest])?;
            let (attended, summary) = (None, self.seen(own).map(|seen| seen.summary));
            return Ok(StepOutput {
                top,
                attended,
                summary,
            });
        };
        let attend = |query: &Tensor| cross.attention.attend(query, over, scope, pass);
        match cross.order {
            AttentionOrder::Bahdanau => {
                let attended = attend(&self.output_of(&own[highest])?)?;
                let feed = Some(&attended.context);
                self.step_cells(own, input, feed, scope, pass)?;
                let top = self.output_of(&own[highest])?;
                Ok(StepOutput::attended(top, attended))
            }
            AttentionOrder::Luong => {
                let feed = cross.feeds.then(|| own.pop()).flatten();
                self.step_cells(own, input, feed.as_ref(), scope, pass)?;
                let state = self.output_of(&own[highest])?;
                let attended = attend(&state)?;
                let top = cross.combine(&[&attended.context, &state], pass)?;
                if cross.feeds {
                    own.push(top.clone());
                }
                Ok(StepOutput::attended(top, attended))
            }
        }
    }

    fn step_cells(
        &self,
        own: &mut [Tensor],
        input: StepInput,
        feed: Option<&Tensor>,
        scope: &Scope,
        pass: &Pass,
    ) -> Result<()> {
        let mut below: Option<Tensor> = None;
        for (n, layer) in self.layers.iter().enumerate() {
            let state = own[n].contiguous()?;
            let output = self.output_of(&state)?;
            let feed = feed.filter(|_| n == 0);
            let recurrent = match (feed, &layer.feed) {
                (None, _) => linear(&output, &[&layer.recurrent], pass)?,
                (Some(feed), None) => {
                    let both = beside(feed, &output, pass)?;
                    linear(&both, &[&layer.recurrent], pass)?
                }
                (Some(feed), Some(feeder)) => {
                    let recurrent = linear(&output, &[&layer.recurrent], pass)?;
                    beside(&recurrent, &linear(feed, &[feeder], pass)?, pass)?
                }
            };
            own[n] = match &below {
                None => {
                    let rows = input.rows.clone();
                    cell(self.cell, input.gates, rows, &recurrent, &state, pass)?
                }
                Some(below) => {
                    let drop = scope.dropout(layer.drop.of(pass));
                    let below = dropout(below, &drop, pass)?;
                    let input = Shared::new(&linear(&below, &[&layer.input], pass)?, pass)?;
                    let rows = 0..below.dim(0)?;
                    cell(self.cell, &input, rows, &recurrent, &state, pass)?
                }
            };
            below = Some(self.output_of(&own[n])?);
        }
        Ok(())
    }

    /// The part of a state that others see: `[k, S]` to `[k, h]`.
    fn output_of(&self, state: &Tensor) -> Result<Tensor> {
        state.narrow(1, 0, self.width)?.contiguous()
    }

    /// The hidden state that predicts a token. In Bahdanau's order, and with a summary at every step, it combines the
    /// state, the context and the previous token; no step depends on it. x `[k, e]` are the embedded previous tokens.
    pub(super) fn readout(&self, step: &StepOutput, x: &Tensor, pass: &Pass) -> Result<Tensor> {
        if let Some((summary, c)) = self.summary.as_ref().zip(step.summary.as_ref()) {
            return summary.readout(&step.top, c, x, pass);
        }
        match (&self.attention, &step.attended) {
            (Some(cross), Some(attended)) if cross.order == AttentionOrder::Bahdanau => {
                cross.combine(&[&step.top, &attended.context, x], pass)
            }
            _ => Ok(step.top.clone()),
        }
    }

    /// Teacher forcing. `embed` embeds the previous tokens, `[n, e]`, in the order that it is given.
    pub(super) fn forward(
        &self,
        memory: &Encoded,
        targets: &Segments,
        embed: impl FnOnce(Option<&[u32]>) -> Result<Tensor>,
        pass: &Pass,
    ) -> Result<Decoded> {
        match &self.attention {
            Some(cross) if cross.is_fed() => self.one_by_one(memory, targets, embed, pass),
            _ => self.all_at_once(memory, targets, &embed(None)?, pass),
        }
    }

    /// Without input feeding no step depends on an attention, so that all attentions are computed at once.
    fn all_at_once(
        &self,
        memory: &Encoded,
        targets: &Segments,
        x: &Tensor,
        pass: &Pass,
    ) -> Result<Decoded> {
        let own = self.start(memory, pass)?;
        let seen = self
            .seen(&own)
            .map(|seen| seen.by_token(targets))
            .transpose()?;
        let (y, mut x) = (x, x.clone());
        for (n, (layer, start)) in self.layers.iter().zip(&own).enumerate() {
            let input = dropout(&x, &layer.drop.of_rows(targets, pass), pass)?;
            let mut input = linear(&input, &[&layer.input], pass)?;
            if let Some(seen) = seen.as_ref().filter(|_| n == 0) {
                input = (input + &seen.gates)?;
            }
            let (start, forward) = (Some(start), Direction::Forward);
            let states = recurrence(
                self.cell,
                &input,
                &layer.recurrent,
                start,
                targets,
                forward,
                pass,
            )?;
            x = self.output_of(&states)?;
        }
        let Some(cross) = &self.attention else {
            let step = StepOutput {
                top: x,
                attended: None,
                summary: seen.map(|seen| seen.summary),
            };
            return Ok(Decoded {
                hidden: self.readout(&step, y, pass)?,
                alignment: None,
            });
        };
        let sources = self.source_keys_values(memory, pass)?;
        let over = KeysValues::new(&sources[0], &sources[1], pass)?;
        let scope = Scope::new(targets, &memory.segments, Mask::Full);
        let attended = cross.attention.attend(&x, &over, &scope, pass)?;
        Ok(Decoded {
            hidden: cross.combine(&[&attended.context, &x], pass)?,
            alignment: Some(Alignment {
                weights: attended.weights,
                choice: attended.choice,
                keys: memory.segments.clone(),
            }),
        })
    }

    fn one_by_one(
        &self,
        memory: &Encoded,
        targets: &Segments,
        embed: impl FnOnce(Option<&[u32]>) -> Result<Tensor>,
        pass: &Pass,
    ) -> Result<Decoded> {
        let schedule = Schedule::new(targets);
        let memory = schedule.sorted(memory)?;
        let x = embed(Some(schedule.rows()))?;
        let gates = self.input(&x, pass)?;
        let sources = self.source_keys_values(&memory, pass)?;
        let over = KeysValues::new(&sources[0], &sources[1], pass)?;
        let mut own = self.start(&memory, pass)?;
        let mut steps = Vec::new();
        for (time, rows) in schedule.steps().enumerate() {
            for own in &mut own {
                *own = own.narrow(0, 0, rows.len())?;
            }
            let scope = Scope::at(time, schedule.going(time), &memory.segments);
            let input = StepInput {
                gates: &gates,
                rows,
            };
            steps.push(self.step(&mut own, input, Some(&over), &scope, pass)?);
        }
        let all = StepOutput::join(&steps)?;
        let hidden = schedule.unsorted(&self.readout(&all, &x, pass)?)?;
        let alignment = all.attended.map(|attended| -> Result<Alignment> {
            Ok(Alignment {
                weights: schedule.unsorted(&attended.weights)?,
                choice: attended
                    .choice
                    .map(|choice| choice.map(|tensor| schedule.unsorted(tensor)))
                    .transpose()?,
                keys: schedule.keys(&memory),
            })
        });
        let alignment = alignment.transpose()?;
        Ok(Decoded { hidden, alignment })
    }
}
