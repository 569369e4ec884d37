use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::ending::end_lost;
use super::ranks::Ranks;
use super::silence::{SETTLED, Silence};
use super::timeout::Timeout;

const TICK: Duration = Duration::from_millis(100);

/// What the owner has counted of each rank: the messages of others, and the rounds of its own.
pub(crate) struct Counts(Vec<AtomicU64>);

impl Counts {
    /// Only peers, and this rank itself, are listened to.
    pub(crate) fn new(ranks: &Ranks) -> Self {
        let mut counts: Vec<_> = (0..ranks.size()).map(|_| AtomicU64::new(SETTLED)).collect();
        for rank in ranks.peers().chain([ranks.me]) {
            counts[rank] = AtomicU64::new(0);
        }
        Self(counts)
    }

    pub(crate) fn add(&self, rank: usize) {
        self.0[rank].fetch_add(1, Ordering::Relaxed);
    }

    /// This rank has said that it ends.
    pub(crate) fn settle(&self, rank: usize) {
        self.0[rank].store(SETTLED, Ordering::Relaxed);
    }

    #[cfg(feature = "mpi")]
    pub(crate) fn is_settled(&self, rank: usize) -> bool {
        self.0[rank].load(Ordering::Relaxed) == SETTLED
    }
}

/// Ends the process if a rank is lost. Returns when the owner drops its end of the channel.
pub(crate) fn check(ranks: &Ranks, counts: &Arc<Counts>, timeout: Timeout, until: &Receiver<()>) {
    let Timeout(timeout) = timeout;
    let mut silence = Silence::new(ranks.me, ranks.size(), timeout);
    let mut last = Instant::now();
    while until.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
        let now = Instant::now();
        let seen = counts.0.iter().map(|count| count.load(Ordering::Relaxed));
        if let Some(lost) = silence.observe(seen, now - last) {
            let (name, seconds) = (ranks.name(lost), timeout.as_secs());
            end_lost(&if lost == ranks.me {
                format!(
                    "{name}: the thread of the heartbeat has not returned from a call for {} s or more",
                    timeout.as_secs() / 2
                )
            } else {
                format!(
                    "{name} has not been heard from for {seconds} s: it is stopped, or its machine or network is down"
                )
            });
        }
        last = now;
    }
}
