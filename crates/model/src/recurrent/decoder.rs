use std::ops::Range;

use attend_ops::{
    Cell, Direction, DropoutSite, Linear, Mask, Pass, Segments, Shared, beside, cell, dropout,
    linear, recurrence,
};
use candle_core::{Result, Tensor};

use super::attention_config::{AttentionChoice, Order};
use super::config::RecurrentConfig;
use super::looking::Looking;
use super::schedule::Schedule;
use super::stepped::Stepped;
use super::{gates, recurrent};
use crate::attention::{Read, Scope};
use crate::params::Init;
use crate::seq2seq::Alignment;
use crate::{Memory, Output};

/// Layers that step from token to token, and what they look up in the source.
pub(crate) struct Decoder {
    cell: Cell,
    layers: Vec<Layer>,
    pub(crate) attention: Option<Looking>,
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

impl Decoder {
    pub(crate) fn new(config: &RecurrentConfig, init: &mut Init) -> Result<Self> {
        let (e, h) = (config.d_embed, config.d_hidden);
        let cell = Cell::from(config.cell);
        let attention = match &config.attention {
            AttentionChoice::None => None,
            AttentionChoice::Some(attention) => Some(Looking::new(attention, e, h, init)?),
        };
        let fed = attention.as_ref().is_some_and(Looking::is_fed);
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
        Ok(Self {
            cell,
            layers,
            attention,
            width: h,
        })
    }

    /// What the attention reads of the source at every step: keys and values `[m, h]`, if it has one.
    pub(crate) fn read(&self, memory: &Memory, pass: &Pass) -> Result<Vec<Tensor>> {
        match &self.attention {
            None => Ok(Vec::new()),
            Some(looking) => {
                let keys = looking.attention.score.read(&memory.states, pass)?;
                Ok(vec![keys, memory.states.clone()])
            }
        }
    }

    /// The state before the first token: that of every layer `[b, S]`, and what is fed in at first.
    pub(crate) fn start(&self, memory: &Memory) -> Result<Vec<Tensor>> {
        let (finals, count) = (&memory.finals, self.layers.len());
        // From the encoder's highest layers; from the highest of all if it has fewer.
        let first = finals.len().saturating_sub(count);
        let own = (first..first + count).map(|n| finals[n.min(finals.len() - 1)].clone());
        let mut own: Vec<Tensor> = own.collect();
        if self.attention.as_ref().is_some_and(|looking| looking.feeds) {
            let nothing = (memory.segments.count(), self.width);
            own.push(Tensor::zeros(nothing, own[0].dtype(), own[0].device())?);
        }
        Ok(own)
    }

    /// The input side of the lowest layer's gates, of all steps at once.
    pub(crate) fn input(&self, x: &Tensor, pass: &Pass) -> Result<Shared> {
        Shared::new(&linear(x, &[&self.layers[0].input], pass)?, pass)
    }

    /// One more token for each row of the state; its inputs are `rows` of `input`.
    pub(crate) fn step(
        &self,
        own: &mut Vec<Tensor>,
        (input, rows): (&Shared, Range<usize>),
        read: Option<&Read>,
        scope: &Scope,
        pass: &Pass,
    ) -> Result<Stepped> {
        let highest = self.layers.len() - 1;
        let time = scope.positions.first().map_or(0, |&time| time as usize);
        let Some((looking, read)) = self.attention.as_ref().zip(read) else {
            self.step_cells(own, (input, rows), None, time, pass)?;
            let top = self.output_of(&own[highest])?;
            let attended = None;
            return Ok(Stepped { top, attended });
        };
        let attend = |query: &Tensor| looking.attention.attend(query, read, scope, pass);
        match looking.order {
            Order::Bahdanau => {
                let attended = attend(&self.output_of(&own[highest])?)?;
                let feed = Some(&attended.context);
                self.step_cells(own, (input, rows), feed, time, pass)?;
                let top = self.output_of(&own[highest])?;
                let attended = Some(attended);
                Ok(Stepped { top, attended })
            }
            Order::Luong => {
                let feed = looking.feeds.then(|| own.pop()).flatten();
                self.step_cells(own, (input, rows), feed.as_ref(), time, pass)?;
                let state = self.output_of(&own[highest])?;
                let attended = attend(&state)?;
                let top = looking.combine(&[&attended.context, &state], pass)?;
                if looking.feeds {
                    own.push(top.clone());
                }
                let attended = Some(attended);
                Ok(Stepped { top, attended })
            }
        }
    }

    fn step_cells(
        &self,
        own: &mut [Tensor],
        (input, rows): (&Shared, Range<usize>),
        feed: Option<&Tensor>,
        time: usize,
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
                None => cell(self.cell, input, rows.clone(), &recurrent, &state, pass)?,
                Some(below) => {
                    let below = dropout(below, layer.drop.of(pass).at(time), pass)?;
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

    /// What tokens are predicted from: in Bahdanau's order, the state, the context and the previous token
    /// together, which no step waits for. x `[k, e]` are the embedded previous tokens.
    pub(crate) fn read_out(&self, stepped: &Stepped, x: &Tensor, pass: &Pass) -> Result<Tensor> {
        match (&self.attention, &stepped.attended) {
            (Some(looking), Some(attended)) if looking.order == Order::Bahdanau => {
                looking.combine(&[&stepped.top, &attended.context, x], pass)
            }
            _ => Ok(stepped.top.clone()),
        }
    }

    /// Teacher forcing. `embed` makes `[n, e]` of the previous tokens, in the order it is given.
    pub(crate) fn forward(
        &self,
        memory: &Memory,
        targets: &Segments,
        embed: impl FnOnce(Option<&[u32]>) -> Result<Tensor>,
        pass: &Pass,
    ) -> Result<Output> {
        match &self.attention {
            Some(looking) if looking.is_fed() => self.one_by_one(memory, targets, embed, pass),
            _ => self.all_at_once(memory, targets, &embed(None)?, pass),
        }
    }

    /// Where no step waits for the attention of another, it comes after all of them.
    fn all_at_once(
        &self,
        memory: &Memory,
        targets: &Segments,
        x: &Tensor,
        pass: &Pass,
    ) -> Result<Output> {
        let mut x = x.clone();
        for (layer, start) in self.layers.iter().zip(self.start(memory)?) {
            let input = dropout(&x, layer.drop.of(pass), pass)?;
            let input = linear(&input, &[&layer.input], pass)?;
            let (start, forward) = (Some(&start), Direction::Forward);
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
        let Some(looking) = &self.attention else {
            let (hidden, alignment) = (x, None);
            return Ok(Output { hidden, alignment });
        };
        let sources = self.read(memory, pass)?;
        let read = Read::new(&sources[0], &sources[1], pass)?;
        let scope = Scope::new(targets, &memory.segments, Mask::Full);
        let attended = looking.attention.attend(&x, &read, &scope, pass)?;
        Ok(Output {
            hidden: looking.combine(&[&attended.context, &x], pass)?,
            alignment: Some(Alignment {
                weights: attended.weights,
                choice: attended.choice,
                keys: memory.segments.clone(),
            }),
        })
    }

    fn one_by_one(
        &self,
        memory: &Memory,
        targets: &Segments,
        embed: impl FnOnce(Option<&[u32]>) -> Result<Tensor>,
        pass: &Pass,
    ) -> Result<Output> {
        let schedule = Schedule::new(targets);
        let memory = schedule.sorted(memory)?;
        let x = embed(Some(schedule.rows()))?;
        let input = self.input(&x, pass)?;
        let sources = self.read(&memory, pass)?;
        let read = Read::new(&sources[0], &sources[1], pass)?;
        let mut own = self.start(&memory)?;
        let mut steps = Vec::new();
        for (time, rows) in schedule.steps().enumerate() {
            for own in &mut own {
                *own = own.narrow(0, 0, rows.len())?;
            }
            let scope = Scope::at(time, schedule.going(time), &memory.segments);
            steps.push(self.step(&mut own, (&input, rows), Some(&read), &scope, pass)?);
        }
        let all = Stepped::join(&steps)?;
        let hidden = schedule.unsorted(&self.read_out(&all, &x, pass)?)?;
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
        Ok(Output { hidden, alignment })
    }
}
