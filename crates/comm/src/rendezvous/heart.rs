use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::files::Files;
use crate::watch::{Counts, Ranks, Timeout, check, name_rank_of_panics};
use crate::{Error, Result};

const TICK: Duration = Duration::from_millis(500);
/// What a rank writes last.
const BYE: &str = "bye";

/// A thread that writes a count every half second, and reads those of others.
pub(super) struct Heart {
    thread: JoinHandle<()>,
    stop: Arc<AtomicBool>,
    /// The checker ends when it is dropped.
    checking: Sender<()>,
}

impl Heart {
    pub(super) fn start(files: Files, ranks: Ranks, timeout: Timeout) -> Result<Self> {
        name_rank_of_panics(&ranks);
        let start = |error: std::io::Error| Error::Start {
            library: "the heartbeat",
            problem: error.to_string(),
        };
        let ranks = Arc::new(ranks);
        let counts = Arc::new(Counts::new(&ranks));
        let (checking, until) = channel();
        let checked = (ranks.clone(), counts.clone());
        let checker = move || check(&checked.0, &checked.1, timeout, &until);
        let checker = thread::Builder::new().name("ranks".into()).spawn(checker);
        checker.map_err(start)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let beat = move || beat(&files, &ranks, &counts, &stopped);
        let thread = thread::Builder::new().name("heart".into()).spawn(beat);
        Ok(Self {
            thread: thread.map_err(start)?,
            stop,
            checking,
        })
    }

    pub(super) fn finish(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        // It does not panic; if it did, the panic is printed.
        let _ = self.thread.join();
        drop(self.checking);
    }
}

/// A file that cannot be written counts as silence: the other ranks end the job.
fn beat(files: &Files, ranks: &Ranks, counts: &Counts, stop: &AtomicBool) {
    let mut seen = vec![String::new(); ranks.size()];
    let mut count = 0u64;
    loop {
        counts.add(ranks.me);
        if stop.load(Ordering::Relaxed) {
            let _ = files.write("beat", ranks.me, BYE);
            return;
        }
        count += 1;
        let _ = files.write("beat", ranks.me, &format!("{} {count}", files.name));
        for rank in ranks.peers() {
            match files.read("beat", rank) {
                // It may be left over from an earlier job, whose ranks have all said so.
                Some(beat) if beat == BYE && !seen[rank].is_empty() => counts.settle(rank),
                Some(beat) if beat != BYE && beat != seen[rank] => {
                    counts.add(rank);
                    seen[rank] = beat;
                }
                _ => {}
            }
        }
        thread::park_timeout(TICK);
    }
}
