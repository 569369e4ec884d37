use attend_ops::{
    Cell, Direction, DropoutSite, Linear, Pass, Segments, dropout, linear, recurrence,
};
use candle_core::{Result, Tensor, bail};

use super::config::RecurrentConfig;
use super::{gates, recurrent};
use crate::params::Init;

/// Layers that read a sentence from one end to the other, or in both directions at once.
pub(crate) struct Encoder {
    cell: Cell,
    layers: Vec<Layer>,
}

struct Layer {
    readers: Vec<Reader>,
    drop: DropoutSite,
}

/// One direction of a layer, w wide.
struct Reader {
    direction: Direction,
    width: usize,
    input: Linear,
    recurrent: Linear,
}

impl Encoder {
    pub(crate) fn new(config: &RecurrentConfig, init: &mut Init) -> Result<Self> {
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
            let inputs = if n == 0 {
                config.d_embed
            } else {
                config.d_hidden
            };
            let readers = directions.iter().map(|&direction| {
                let name = match direction {
                    Direction::Forward => format!("{name}.forward"),
                    Direction::Backward => format!("{name}.backward"),
                };
                Ok(Reader {
                    direction,
                    width,
                    input: gates(cell, &name, inputs, width, init)?,
                    recurrent: recurrent(cell, &name, width, width, init)?,
                })
            });
            layers.push(Layer {
                readers: readers.collect::<Result<_>>()?,
                drop: DropoutSite::new(if n == 0 { 0.0 } else { config.dropout }, &name),
            });
        }
        Ok(Self { cell, layers })
    }

    /// Embedded tokens `[n, e]` to states `[n, h]`, and the state in which each layer ends, `[b, S]`.
    pub(crate) fn forward(
        &self,
        x: &Tensor,
        sentences: &Segments,
        pass: &Pass,
    ) -> Result<(Tensor, Vec<Tensor>)> {
        if sentences.lengths().contains(&0) {
            bail!("a recurrent encoder has nothing to start a decoder from in an empty sentence");
        }
        let mut x = x.clone();
        let mut finals = Vec::new();
        for layer in &self.layers {
            let input = dropout(&x, layer.drop.of(pass), pass)?;
            let mut outputs = Vec::new();
            let mut lasts = Vec::new();
            for reader in &layer.readers {
                let states = reader.read(self.cell, &input, sentences, pass)?; // (n, S)
                outputs.push(states.narrow(1, 0, reader.width)?);
                lasts.push(reader.last(&states, sentences)?);
            }
            x = Tensor::cat(&outputs, 1)?.contiguous()?; // (n, h)
            finals.push(self.join(&lasts)?);
        }
        Ok((x, finals))
    }

    /// The last states of both directions as one: outputs side by side, then cells.
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

impl Reader {
    fn read(&self, cell: Cell, x: &Tensor, sentences: &Segments, pass: &Pass) -> Result<Tensor> {
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

    /// The states where it ends: `[n, S]` to `[b, S]`.
    fn last(&self, states: &Tensor, sentences: &Segments) -> Result<Tensor> {
        let rows = sentences.ranges().map(|range| match self.direction {
            Direction::Forward => range.end as u32 - 1,
            Direction::Backward => range.start as u32,
        });
        let rows = Tensor::new(rows.collect::<Vec<_>>(), states.device())?;
        states.index_select(&rows, 0)
    }
}
