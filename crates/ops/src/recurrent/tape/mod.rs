//! A recurrent layer with a memory: the Long Short-Term Memory-Network (Cheng, Dong and Lapata 2016). It keeps
//! the state after every token on a tape, and each step attends to the tape instead of reading the last state.
//!
//! h is the width. x `[n, X]` is the input side of all tokens; h' and c' are what a step reads from the tape
//! of its own sentence, kᵢ = K hᵢ are keys, and v is a vector (§3.1):
//!
//! q = x_q + Q h'ₜ₋₁,  eᵢ = v · tanh(q + kᵢ) for i < t,  s = softmax(e),  h' = Σ sᵢ hᵢ,  c' = Σ sᵢ cᵢ
//!
//! i, f, g, o = x + U h',  c = σ(f) c' + σ(i) tanh(g),  h = σ(o) tanh(c).
//!
//! The first step has nothing to read: h' = c' = 0. A decoder also reads the source (§3.2, [`Fusion`]), with
//! keys kⱼ and a vector of its own. Shallow fusion is the attention of Bahdanau et al. 2015, with the weighted
//! mean γ' of the source's outputs as an input of the step:
//!
//! q = A hₜ₋₁,  i, f, g, o = x + U h' + F γ'.
//!
//! Deep fusion reads both tapes of the source, γ' and α', and a gate adds the second to the memory:
//!
//! q = x_s + A γ'ₜ₋₁,  r = σ(x_r + F γ'),  c = σ(f) c' + σ(i) tanh(g) + r α'.

mod backward;
mod cell;
mod composed;
mod forward;
mod gradients;
mod layout;
mod operation;
mod step;
#[cfg(test)]
mod tests;

use attend_batch::Segments;
use candle_core::{Result, Tensor, bail};

use crate::linear::Linear;
use crate::pass::{Kernels, Pass};
use crate::weight::Weight;
use layout::Layout;
use operation::Operation;

pub use step::{SourceSoFar, TapeSoFar, TapeStep, tape_step};

/// How a decoder's layer uses what it reads from the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fusion {
    /// What it reads is an input of the gates.
    Shallow,
    /// What it reads is added to the memory, through a gate.
    Deep,
}

/// The weights of one layer.
#[derive(Clone, Debug)]
pub struct TapeLayer {
    /// U `[4h, h]`
    pub recurrent: Linear,
    /// Q `[h, h]`
    pub query: Linear,
    /// K `[h, h]`
    pub key: Linear,
    /// v `[h]`
    pub vector: Weight,
    pub source: Option<SourceReader>,
}

/// The weights with which a layer reads the source.
#[derive(Clone, Debug)]
pub struct SourceReader {
    pub fusion: Fusion,
    /// A `[h, h]`
    pub query: Linear,
    /// `[h]`
    pub vector: Weight,
    /// F: `[4h, h]` if the fusion is shallow, `[h, h]` if it is deep.
    pub gate: Linear,
}

/// What a layer reads of the source.
#[derive(Clone, Debug)]
pub struct SourceTape {
    /// `[m, h]`
    pub keys: Tensor,
    /// The outputs `[m, h]` for shallow fusion; outputs and memory side by side `[m, 2h]` for deep fusion.
    pub values: Tensor,
    pub segments: Segments,
}

/// The tapes of all sentences.
pub struct Tapes {
    /// `[n, 2h]`: h and c after every token.
    pub states: Tensor,
    /// γ' `[n, h]`, if the fusion is shallow.
    pub context: Option<Tensor>,
    /// Only in evaluation.
    pub weights: Option<TapeWeights>,
}

/// How every step attended.
pub struct TapeWeights {
    /// `[n, l]`: a column for each token of the longest sentence, nonzero for those before the row's own.
    pub own: Tensor,
    /// `[n, s]`: a column for each token of the longest source.
    pub source: Option<Tensor>,
}

/// Processes every sentence from its first token to its last: x `[n, X]`, the input side of all tokens. X is 5h:
/// the gates in the order i, f, g, o, then x_q. With deep fusion it is 7h, with x_r and x_s after them.
pub fn tapes(
    input: &Tensor,
    layer: &TapeLayer,
    sentences: &Segments,
    source: Option<&SourceTape>,
    pass: &Pass,
) -> Result<Tapes> {
    let layout = Layout::new(layer)?;
    let (n, width) = input.dims2()?;
    if width != layout.input() {
        let h = layout.h;
        bail!("an input of width {width} does not match a tape of width {h}");
    }
    if sentences.lengths().iter().sum::<usize>() != n || sentences.rows() != n {
        bail!("{n} rows do not match the lengths of their sentences");
    }
    layout.check_source(source)?;
    if let Some(source) = source
        && source.segments.count() != sentences.count()
    {
        let (ours, theirs) = (sentences.count(), source.segments.count());
        bail!("{ours} sentences cannot read the tapes of {theirs} sources");
    }
    match pass.kernels {
        Kernels::Composed => composed::tapes(input, layer, layout, sentences, source, pass),
        Kernels::Fused => Operation::run(input, layer, layout, sentences, source, pass),
    }
}

impl TapeLayer {
    /// All of its weights.
    fn weights(&self) -> Vec<&Weight> {
        let mut linears = vec![&self.recurrent, &self.query, &self.key];
        let mut weights = vec![&self.vector];
        if let Some(source) = &self.source {
            linears.extend([&source.query, &source.gate]);
            weights.push(&source.vector);
        }
        weights.extend(linears.into_iter().map(|linear| &linear.weight));
        weights
    }
}
