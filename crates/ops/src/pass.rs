use candle_core::Device;

use crate::random::{Dropout, Key, Site};

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

/// The options of one forward pass, passed to every operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    pub kernels: Kernels,
    pub mode: Mode,
}

impl Pass {
    pub fn train(kernels: Kernels, seed: u64, draw: u64) -> Self {
        let mode = Mode::Train { seed, draw };
        Self { kernels, mode }
    }

    pub fn eval(kernels: Kernels) -> Self {
        let mode = Mode::Eval;
        Self { kernels, mode }
    }

    /// The dropout of one site in this pass; none in evaluation.
    pub fn dropout(&self, rate: f32, site: Site) -> Dropout {
        match self.mode {
            Mode::Train { seed, draw } => Dropout::new(rate, Key::new(seed, draw, site)),
            Mode::Eval => Dropout::NONE,
        }
    }

    /// Whether gradients will be computed.
    pub fn trains(&self) -> bool {
        self.mode != Mode::Eval
    }
}
