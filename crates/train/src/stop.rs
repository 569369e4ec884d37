use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};

/// Ctrl-C and SIGTERM: the first asks for a stop after the step, the second exits at once.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicUsize>);

impl Stop {
    /// Listens from now on.
    pub fn listen() -> std::io::Result<Self> {
        let stop = Self::default();
        for signal in [SIGINT, SIGTERM] {
            let asked = Arc::new(std::sync::atomic::AtomicBool::new(false));
            // Order matters: the exit sees the flag as the signal before this one left it.
            let status = 128 + signal;
            signal_hook::flag::register_conditional_shutdown(signal, status, asked.clone())?;
            signal_hook::flag::register(signal, asked)?;
            signal_hook::flag::register_usize(signal, stop.0.clone(), signal as usize)?;
        }
        Ok(stop)
    }

    /// The exit status that the signal asks for, if one has come.
    pub fn status(&self) -> Option<u8> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(128 + signal as u8),
        }
    }
}
