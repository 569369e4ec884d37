//! Where the time of a step goes, by operation. Off unless asked for.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A part of a training step on the fused path.
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
    Norm,
    Activation,
    Loss,
    Optimizer,
}

impl Part {
    pub const ALL: [Part; 12] = [
        Part::LinearForward,
        Part::LinearInput,
        Part::LinearWeight,
        Part::Attention,
        Part::AttentionBackward,
        Part::Recurrence,
        Part::RecurrenceBackward,
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
            Part::Norm => "residual and norm, both ways",
            Part::Activation => "activation, backward",
            Part::Loss => "output projection and loss, both ways",
            Part::Optimizer => "clipping, Adam, moving average",
        }
    }
}

static ON: AtomicBool = AtomicBool::new(false);
static NANOSECONDS: [AtomicU64; Part::ALL.len()] = [const { AtomicU64::new(0) }; Part::ALL.len()];

/// Begins to measure, from nothing.
pub fn start() {
    NANOSECONDS
        .iter()
        .for_each(|time| time.store(0, Ordering::Relaxed));
    ON.store(true, Ordering::Relaxed);
}

/// Runs work that is not part of a step, such as validating, without measuring it.
pub fn paused<T>(work: impl FnOnce() -> T) -> T {
    let on = ON.swap(false, Ordering::Relaxed);
    let result = work();
    ON.store(on, Ordering::Relaxed);
    result
}

/// What each part has taken since [`start`]. Parts run one after the other, each on all threads.
pub fn times() -> [(Part, Duration); Part::ALL.len()] {
    let time = |part: Part| NANOSECONDS[part as usize].load(Ordering::Relaxed);
    Part::ALL.map(|part| (part, Duration::from_nanos(time(part))))
}

/// Measures a part until it is dropped.
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
