use attend_batch::Segments;
use attend_ops::{Cell, Direction, DropoutSite, Linear, Pass, dropout, linear, recurrence};
use candle_core::{Result, Tensor, bail};

use super::config::RecurrentConfig;
use super::{gates, recurrent};
use crate::weights::Init;

/// Recurrent layers, unidirectional or bidirectional.
pub(crate) struct Encoder {
    cell: Cell,
    layers: Vec<Layer>,
}

struct Layer {
    directions: Vec<DirectionalRnn>,
    drop: DropoutSite,
}

/// One direction of a layer.
struct DirectionalRnn {
    direction: Direction,
    width: usize,
    input: Linear,
    recurrent: Linear,
}

impl Encoder {
    /// For inputs of this width.
    pub(crate) fn new(config: &RecurrentConfig, inputs: usize, init: &mut Init) -> Result<Self> {
        let cell = Cell::from(config.cell);
        let directions = match (config.bidirectional, config.reverse_source) {
            (true, _) => vec![Direction::Forward, Direction::Backward],
            (false, false) => vec![Direction::Forward],
            (false, true) => vec![Direction::Backward],
        };
        let width = config.d_hidden / directions.len();
        let mut layers = Vec::new();
        for n in 0..config.encoder_layers {
            let name = format!("model.encoder.layers.{n}");
            let inputs = if n == 0 { inputs } else { config.d_hidden };
            let rnns = directions.iter().map(|&direction| {
                let name = match direction {
                    Direction::Forward => format!("{name}.forward"),
                    Direction::Backward => format!("{name}.backward"),
                };
                Ok(DirectionalRnn {
                    direction,
                    width,
                    input: gates(cell, &name, inputs, width, init)?,
                    recurrent: recurrent(cell, &name, width, width, init)?,
                })
            });
            layers.push(Layer {
                directions: rnns.collect::<Result<_>>()?,
                drop: DropoutSite::new(if n == 0 { 0.0 } else { config.dropout }, &name),
            });
        }
        Ok(Self { cell, layers })
    }

    /// Embedded tokens or other inputs to states `[n, h]`, and the final state of each layer, `[b, S]`.
    pub(crate) fn forward(
        &self,
        x: &Tensor,
        sentences: &Segments,
        pass: &Pass,
    ) -> Result<(Tensor, Vec<Tensor>)> {
        if sentences.lengths().contains(&0) {
            bail!("a recurrent encoder cannot encode an empty sentence: it has no final state");
        }
        let mut x = x.clone();
        let mut finals = Vec::new();
        for layer in &self.layers {
            let input = dropout(&x, &layer.drop.of_rows(sentences, pass), pass)?;
            let mut outputs = Vec::new();
            let mut lasts = Vec::new();
            for rnn in &layer.directions {
                let states = rnn.forward(self.cell, &input, sentences, pass)?; // (n, S)
                outputs.push(states.narrow(1, 0, rnn.width)?);
                lasts.push(rnn.last(&states, sentences)?);
            }
            x = Tensor::cat(&outputs, 1)?.contiguous()?; // (n, h)
            finals.push(self.join(&lasts)?);
        }
        Ok((x, finals))
    }

    /// Concatenates the final states of the directions: their outputs, then for an LSTM their cells.
    fn join(&self, lasts: &[Tensor]) -> Result<Tensor> {
        let parts = |part: usize| {
            lasts.iter().map(move |last| {
                let width = last.dim(1)? / self.cell.state_width(1);
                last.narrow(1, part * width, width)
            })
        };
        let all = (0..self.cell.state_width(1)).flat_map(parts);
        Tensor::cat(&all.collect::<Result<Vec<_>>>()?, 1)?.contiguous()
    }
}

impl DirectionalRnn {
    fn forward(&self, cell: Cell, x: &Tensor, sentences: &Segments, pass: &Pass) -> Result<Tensor> {
        let input = linear(x, &[&self.input], pass)?;
        let direction = self.direction;
        recurrence(
            cell,
            &input,
            &self.recurrent,
            None,
            sentences,
            direction,
            pass,
        )
    }

    /// The final state of each sentence: `[n, S]` to `[b, S]`. That of a backward RNN is at the first token.
    fn last(&self, states: &Tensor, sentences: &Segments) -> Result<Tensor> {
        let rows = sentences.ranges().map(|range| match self.direction {
            Direction::Forward => range.end as u32 - 1,
            Direction::Backward => range.start as u32,
        });
        let rows = Tensor::new(rows.collect::<Vec<_>>(), states.device())?;
        states.index_select(&rows, 0)
    }
}
