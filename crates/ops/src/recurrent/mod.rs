//! Recurrent layers: LSTM (Hochreiter and Schmidhuber 1997, with the forget gates of Gers, Schmidhuber
//! and Cummins 2000) and GRU (Cho et al. 2014), in the forms and the order of gates of PyTorch.
//!
//! h is the width, G the number of gates, S the width of a state; x `[n, G h]` is the input side of the
//! gates, W x + b of all tokens, and u = U h' (+ b) `[k, G h]` the recurrent side of one step; h' and c'
//! belong to the previous state.
//!
//! LSTM, state h then c:  i, f, g, o = x + u,  c = σ(f) c' + σ(i) tanh(g),  h = σ(o) tanh(c).
//!
//! GRU, state h:  r = σ(x_r + u_r),  z = σ(x_z + u_z),  n = tanh(x_n + r u_n),  h = (1 - z) n + z h'.

mod composed;
mod gates;
mod group;
mod recurrence;
mod step;
mod steps;
mod tape;
#[cfg(test)]
mod tests;

pub use recurrence::recurrence;
pub use step::cell;
pub use tape::{
    Fusion, SourceReader, SourceSoFar, SourceTape, TapeLayer, TapeSoFar, TapeStep, TapeWeights,
    Tapes, tape_step, tapes,
};

/// What a recurrent layer computes in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    Lstm,
    Gru,
}

impl Cell {
    /// Both, for tests that must hold for each.
    pub const ALL: [Cell; 2] = [Cell::Lstm, Cell::Gru];

    /// G: i, f, g, o of an LSTM, r, z, n of a GRU.
    pub fn gates(self) -> usize {
        match self {
            Cell::Lstm => 4,
            Cell::Gru => 3,
        }
    }

    /// S: h then c of an LSTM, h of a GRU.
    pub fn state_width(self, h: usize) -> usize {
        match self {
            Cell::Lstm => 2 * h,
            Cell::Gru => h,
        }
    }

    /// The width of what the backward pass needs of a row: the gates, then tanh(c) of an LSTM, u_n of a GRU.
    fn kept_width(self, h: usize) -> usize {
        (self.gates() + 1) * h
    }
}

/// The direction in which a layer processes a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the first token to the last.
    Forward,
    /// From the last token to the first.
    Backward,
}
