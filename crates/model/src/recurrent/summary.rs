use attend_batch::Segments;
use attend_ops::{Cell, Linear, Pass, linear};
use candle_core::{Result, Tensor};

use super::cross_attention::combined;
use super::encoded::Encoded;
use crate::weights::Init;

/// c, the encoder's summary of a sentence, for a decoder without attention that sees it at every step (Cho et al.
/// 2014). It is the last output of the encoder's highest layer. The paper has another layer on it, c = tanh(V h).
pub(super) struct Summary {
    /// C, whose product with c is added to the input side of the lowest layer's gates.
    gates: Linear,
    /// W in [`Summary::readout`].
    combine: Linear,
    width: usize,
}

/// What the decoder sees of the summaries. Rows are sentences, or hypotheses, or tokens.
#[derive(Clone)]
pub(super) struct Seen {
    /// c `[k, h]`
    pub(super) summary: Tensor,
    /// C c `[k, G h]`
    pub(super) gates: Tensor,
}

impl Summary {
    pub(super) fn new(cell: Cell, e: usize, h: usize, init: &mut Init) -> Result<Self> {
        let gates = cell.gates() * h;
        Ok(Self {
            gates: init.matrix("model.decoder.layers.0.context", h, gates)?,
            combine: init.linear("model.decoder.combine", 2 * h + e, h)?,
            width: h,
        })
    }

    /// Of all sentences.
    pub(super) fn of(&self, memory: &Encoded, pass: &Pass) -> Result<Seen> {
        let last = &memory.finals[memory.finals.len() - 1];
        let summary = last.narrow(1, 0, self.width)?.contiguous()?;
        let gates = linear(&summary, &[&self.gates], pass)?;
        Ok(Seen { summary, gates })
    }

    /// tanh(W [s; c; y] + b), where s are the states of the decoder and y the embedded previous tokens: what predicts
    /// a token depends on all three (Cho et al. 2014, §2.2). The paper has maxout units in place of tanh.
    pub(super) fn readout(
        &self,
        s: &Tensor,
        c: &Tensor,
        y: &Tensor,
        pass: &Pass,
    ) -> Result<Tensor> {
        combined(&[s, c, y], &self.combine, pass)
    }
}

impl Seen {
    /// A row for each sentence becomes a row for each token.
    pub(super) fn by_token(&self, targets: &Segments) -> Result<Self> {
        let lengths = targets.lengths().iter().zip(0..);
        let rows = lengths.flat_map(|(&length, sentence)| std::iter::repeat_n(sentence, length));
        let rows = Tensor::new(rows.collect::<Vec<u32>>(), self.summary.device())?;
        Ok(Self {
            summary: self.summary.index_select(&rows, 0)?,
            gates: self.gates.index_select(&rows, 0)?,
        })
    }
}
