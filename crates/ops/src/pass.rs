use candle_core::Device;

use crate::random::{Dropout, Key, Site, mix};

/// Which implementation of the operations is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernels {
    /// The CPU kernels of this crate.
    Fused,
    /// Plain candle operations: the only ones on CUDA and Metal, and the reference implementation.
    Composed,
}

impl Kernels {
    /// Both, for tests that must hold for each.
    pub const ALL: [Kernels; 2] = [Kernels::Fused, Kernels::Composed];

    /// The fastest ones of a device.
    pub fn of(device: &Device) -> Kernels {
        if device.is_cpu() {
            Kernels::Fused
        } else {
            Kernels::Composed
        }
    }
}

/// The purpose of a forward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Training: with dropout, and a graph is recorded. `draw` is the number of the forward pass in the run,
    /// so that no two passes use the same random numbers.
    Train { seed: u64, draw: u64 },
    /// Evaluation: no dropout, no graph.
    Eval,
}

/// What is left out of the embeddings of words in training, in addition to dropout.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Words {
    /// The share of tokens whose embeddings are zero.
    pub dropped: f32,
    /// What is cut from the embeddings that are left.
    pub cut: Option<Cut>,
}

/// A cut of embeddings, before positions are added. What is left is not scaled up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cut {
    /// Whole tokens, with this probability.
    Tokens(f32),
    /// Elements of embeddings, with this probability.
    Elements(f32),
}

/// Makes another seed of one.
const TWIN: u64 = 0x7477_696e;

/// The options of one forward pass, passed to every operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pass {
    pub kernels: Kernels,
    pub mode: Mode,
    pub words: Words,
}

impl Pass {
    pub fn train(kernels: Kernels, seed: u64, draw: u64) -> Self {
        Self {
            kernels,
            mode: Mode::Train { seed, draw },
            words: Words::default(),
        }
    }

    pub fn eval(kernels: Kernels) -> Self {
        Self {
            kernels,
            mode: Mode::Eval,
            words: Words::default(),
        }
    }

    /// The same with this left out of embeddings.
    pub fn without(self, words: Words) -> Self {
        Self { words, ..self }
    }

    /// Another pass over the same batch, with other random numbers.
    pub fn twin(self) -> Self {
        let mode = match self.mode {
            Mode::Train { seed, draw } => Mode::Train {
                seed: mix(seed ^ TWIN),
                draw,
            },
            Mode::Eval => Mode::Eval,
        };
        Self { mode, ..self }
    }

    /// The dropout of one site in this pass; none in evaluation.
    pub fn dropout(&self, rate: f32, site: Site) -> Dropout {
        match self.mode {
            Mode::Train { seed, draw } => Dropout::new(rate, Key::new(seed, draw, site)),
            Mode::Eval => Dropout::NONE,
        }
    }

    /// Whether something happens in this pass that has this probability; never in evaluation.
    pub fn happens(&self, rate: f32, site: Site) -> bool {
        !self.dropout(rate, site).is_kept(0)
    }

    /// Whether gradients will be computed.
    pub fn trains(&self) -> bool {
        self.mode != Mode::Eval
    }
}
