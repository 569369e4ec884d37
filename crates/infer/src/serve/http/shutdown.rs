use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

/// How far a server has come on its way to the end.
pub(super) struct Shutdown {
    draining: watch::Sender<bool>,
    cancelled: Arc<AtomicBool>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self {
            draining: watch::Sender::new(false),
            cancelled: Arc::default(),
        }
    }
}

impl Shutdown {
    /// From now on: no new requests; those that are running are finished.
    pub(super) fn drain(&self) {
        self.draining.send_replace(true);
    }

    /// From now on: running requests are given up.
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Waits until no new requests are wanted.
    pub(super) async fn draining(&self) {
        let mut draining = self.draining.subscribe();
        // The sender lives as long as `self`.
        let _ = draining.wait_for(|it| *it).await;
    }

    /// Whether running requests are given up.
    pub(super) fn cancelled(&self) -> Arc<AtomicBool> {
        self.cancelled.clone()
    }
}

/// Waits for SIGTERM and SIGINT.
#[cfg(unix)]
pub(super) struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub(super) fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Waits for Ctrl-C.
#[cfg(not(unix))]
pub(super) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    pub(super) async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}
