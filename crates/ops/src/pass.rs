use candle_core::Device;

use crate::random::{Dropout, Key, Site};

/// Which version of every operation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// The CPU kernels of this crate.
    Fused,
    /// Plain candle ops: the only way on CUDA and Metal, the oracle on CPU.
    Composed,
}

impl Path {
    /// Every path there is, for tests that must hold on each.
    pub const ALL: [Path; 2] = [Path::Fused, Path::Composed];

    /// The fast path of a device.
    pub fn of(device: &Device) -> Path {
        if device.is_cpu() {
            Path::Fused
        } else {
            Path::Composed
        }
    }
}

/// What a forward pass is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Dropout on, graph recorded. `draw` numbers the forward passes of a run, so that no two of
    /// them share random numbers.
    Train { seed: u64, draw: u64 },
    /// No dropout, no graph.
    Eval,
}

/// One forward pass: handed down to every operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    pub path: Path,
    pub mode: Mode,
}

impl Pass {
    pub fn train(path: Path, seed: u64, draw: u64) -> Self {
        let mode = Mode::Train { seed, draw };
        Self { path, mode }
    }

    pub fn eval(path: Path) -> Self {
        let mode = Mode::Eval;
        Self { path, mode }
    }

    /// The dropout of one site in this pass; none in evaluation.
    pub fn dropout(&self, rate: f32, site: Site) -> Dropout {
        match self.mode {
            Mode::Train { seed, draw } => Dropout::new(rate, Key::new(seed, draw, site)),
            Mode::Eval => Dropout::NONE,
        }
    }

    /// Whether gradients will be asked for.
    pub fn trains(&self) -> bool {
        self.mode != Mode::Eval
    }
}
