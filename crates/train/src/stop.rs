use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};

/// Ctrl-C and SIGTERM: the first asks for a stop after the step, the second exits at once.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    signal: Arc<AtomicUsize>,
    /// Whether the next signal exits.
    asked: Arc<AtomicBool>,
}

impl Stop {
    /// Listens from now on.
    pub fn listen() -> std::io::Result<Self> {
        let stop = Self::default();
        for signal in [SIGINT, SIGTERM] {
            // Order matters: the exit sees the flag as the signals before this one left it.
            let status = 128 + signal;
            signal_hook::flag::register_conditional_shutdown(signal, status, stop.asked.clone())?;
            signal_hook::flag::register(signal, stop.asked.clone())?;
            signal_hook::flag::register_usize(signal, stop.signal.clone(), signal as usize)?;
        }
        Ok(stop)
    }

    /// The exit status that the signal asks for, if one has come.
    pub fn status(&self) -> Option<u8> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(128 + signal as u8),
        }
    }

    /// From now on the first signal exits at once: there is nothing left to save.
    pub fn exit_on_signal(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }
}
