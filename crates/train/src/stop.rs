use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use attend_cli::print_line;
use attend_infer::Observer;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

/// Whether a signal asks training to stop: Ctrl-C, SIGTERM, or SIGHUP, which a closed terminal sends.
///
/// A signal exits at once where nothing is lost by it: before training, and after it. While a model is trained,
/// the first signal is noted, and acknowledged on stderr; training ends after the step. The second one exits.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    signal: Arc<AtomicUsize>,
    /// Whether the next signal exits.
    exits: Arc<AtomicBool>,
}

impl Stop {
    /// Listens from now on. A signal exits at once until [`Stop::defer`] is called.
    pub fn listen() -> io::Result<Self> {
        let stop = Self::default();
        stop.exits.store(true, Ordering::SeqCst);
        let mut signals = vec![SIGINT, SIGTERM];
        if !is_ignored(SIGHUP) {
            signals.push(SIGHUP);
        }
        for &signal in &signals {
            // The exit is done by the signal handler itself, so that nothing can hold it up. Order matters:
            // it sees the flag as the signals before this one left it.
            flag::register_conditional_shutdown(signal, 128 + signal, stop.exits.clone())?;
            flag::register(signal, stop.exits.clone())?;
            flag::register_usize(signal, stop.signal.clone(), signal as usize)?;
        }
        let mut signals = Signals::new(signals)?;
        let acknowledge = move || {
            for signal in signals.forever() {
                let name = signal_hook::low_level::signal_name(signal).unwrap_or("signal");
                print_line(&format!(
                    "{name}: stopping as soon as nothing is lost; a second signal exits at once"
                ));
            }
        };
        thread::Builder::new()
            .name("signals".into())
            .spawn(acknowledge)?;
        Ok(stop)
    }

    /// From now on the first signal only asks for a stop.
    pub fn defer(&self) {
        self.exits.store(false, Ordering::SeqCst);
    }

    /// From now on a signal exits at once again. One that came just before does so now.
    pub fn exit_on_signal(&self) {
        self.exits.store(true, Ordering::SeqCst);
        if let Some(status) = self.status() {
            signal_hook::low_level::exit(status.into());
        }
    }

    /// The exit status that the signal asks for, if one has come.
    pub fn status(&self) -> Option<u8> {
        match self.signal.load(Ordering::SeqCst) {
            0 => None,
            signal => Some(128 + signal as u8),
        }
    }
}

/// Translating for a validation is given up for a signal.
impl Observer for Stop {
    fn is_cancelled(&self) -> bool {
        self.status().is_some()
    }
}

/// Whether the program was started with this signal ignored, as `nohup` does with SIGHUP. Only Linux tells.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
