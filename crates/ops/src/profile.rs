//! The time that each operation of a training step takes, off by default; and the peak speed of the cores.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::isa::kernel;

/// A part of a training step with the fused kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Embedding,
    LinearForward,
    LinearInput,
    LinearWeight,
    Attention,
    AttentionBackward,
    Recurrence,
    RecurrenceBackward,
    Convolution,
    ConvolutionBackward,
    Norm,
    Activation,
    Loss,
    Optimizer,
}

impl Part {
    pub const ALL: [Part; 14] = [
        Part::LinearForward,
        Part::LinearInput,
        Part::LinearWeight,
        Part::Attention,
        Part::AttentionBackward,
        Part::Recurrence,
        Part::RecurrenceBackward,
        Part::Convolution,
        Part::ConvolutionBackward,
        Part::Norm,
        Part::Activation,
        Part::Loss,
        Part::Embedding,
        Part::Optimizer,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Part::Embedding => "embedding, both ways",
            Part::LinearForward => "linear, forward",
            Part::LinearInput => "linear, gradient of input",
            Part::LinearWeight => "linear, gradient of weights",
            Part::Attention => "attention, forward",
            Part::AttentionBackward => "attention, backward",
            Part::Recurrence => "recurrence, forward",
            Part::RecurrenceBackward => "recurrence, backward",
            Part::Convolution => "convolution, forward",
            Part::ConvolutionBackward => "convolution, backward",
            Part::Norm => "residual and norm, both ways",
            Part::Activation => "activation, backward",
            Part::Loss => "output projection and loss, both ways",
            Part::Optimizer => "clipping, Adam, moving average",
        }
    }
}

static ON: AtomicBool = AtomicBool::new(false);
static NANOSECONDS: [AtomicU64; Part::ALL.len()] = [const { AtomicU64::new(0) }; Part::ALL.len()];

/// Resets all times and starts measuring.
pub fn start() {
    NANOSECONDS
        .iter()
        .for_each(|time| time.store(0, Ordering::Relaxed));
    ON.store(true, Ordering::Relaxed);
}

/// Runs work that is not part of a step, such as validation, without measuring it.
pub fn paused<T>(work: impl FnOnce() -> T) -> T {
    let on = ON.swap(false, Ordering::Relaxed);
    let result = work();
    ON.store(on, Ordering::Relaxed);
    result
}

/// The time of each part since [`start`]. Parts run one after the other, each on all threads.
pub fn times() -> [(Part, Duration); Part::ALL.len()] {
    let time = |part: Part| NANOSECONDS[part as usize].load(Ordering::Relaxed);
    Part::ALL.map(|part| (part, Duration::from_nanos(time(part))))
}

/// Measures a part until dropped.
pub(crate) struct Timer(Part, Instant);

pub(crate) fn time(part: Part) -> Option<Timer> {
    ON.load(Ordering::Relaxed)
        .then(|| Timer(part, Instant::now()))
}

impl Drop for Timer {
    fn drop(&mut self) {
        let time = self.1.elapsed().as_nanos() as u64;
        NANOSECONDS[self.0 as usize].fetch_add(time, Ordering::Relaxed);
    }
}

/// Floating-point operations per second that all threads together can do in registers: the best of a few
/// runs of independent multiplications and additions, fused where the kernels fuse them.
pub fn ceiling() -> f64 {
    const ROUNDS: usize = 4_000_000;
    let threads = rayon::current_num_threads();
    let run = || {
        let start = Instant::now();
        rayon::broadcast(|_| black_box(multiply_add(black_box(1e-9), ROUNDS)));
        2.0 * (threads * ROUNDS * LANES) as f64 / start.elapsed().as_secs_f64()
    };
    (0..10).map(|_| run()).fold(0.0, f64::max)
}

/// Twelve registers of eight floats. Eight are needed to keep two units with a latency of four cycles busy.
const LANES: usize = 96;

kernel! {
    fn multiply_add(factor: f32, rounds: usize) -> [f32; LANES] {
        Avx512 => rounds_of(rounds, |sum| sum.mul_add(factor, factor)),
        Avx2 => rounds_of(rounds, |sum| sum.mul_add(factor, factor)),
        Neon => rounds_of(rounds, |sum| sum.mul_add(factor, factor)),
        Plain => rounds_of(rounds, |sum| sum * factor + factor),
    }
}

#[inline(always)]
fn rounds_of(rounds: usize, next: impl Fn(f32) -> f32) -> [f32; LANES] {
    let mut sums = [1.0f32; LANES];
    for _ in 0..rounds {
        sums.iter_mut().for_each(|sum| *sum = next(*sum));
    }
    sums
}
