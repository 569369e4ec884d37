use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ferrompi::{Communicator, Request, Scope, Source};

use super::checker::Counts;
use super::ranks::Ranks;
use crate::mpi::number;

/// The same on all ranks, whatever their timeouts.
const APART: Duration = Duration::from_millis(500);
const TICK: Duration = Duration::from_millis(100);
/// While the program waits for its end.
const SHORT_TICK: Duration = Duration::from_millis(1);

const TAG: i32 = 1;
const BEAT: [u8; 1] = [0];
/// The last message of a rank.
const BYE: [u8; 1] = [1];

/// What is sent to one peer.
struct Peer<'s> {
    rank: usize,
    /// The message that is on its way. There is one at a time: if the peer does not receive, nothing piles up.
    sent: Option<Request<'s>>,
    last: Option<Instant>,
    said_bye: bool,
}

/// Sends heartbeats and counts those that arrive, until `stop`. Then it tells the peers that this rank ends, and waits
/// until they say so too. No call waits for a message.
pub(super) fn beat<'s>(
    scope: &'s Scope<'s, '_>,
    line: &Communicator,
    ranks: &Ranks,
    counts: &Counts,
    stop: &AtomicBool,
) -> ferrompi::Result<()> {
    let peer = |rank| Peer {
        rank,
        sent: None,
        last: None,
        said_bye: false,
    };
    let mut peers: Vec<Peer<'s>> = ranks.peers().map(peer).collect();
    loop {
        counts.add(ranks.me);
        let stopping = stop.load(Ordering::Relaxed);
        receive(line, counts)?;
        for peer in &mut peers {
            peer.send(scope, line, stopping)?;
        }
        let done = |peer: &Peer| peer.said_bye && peer.sent.is_none();
        if peers
            .iter()
            .all(|peer| done(peer) && counts.is_settled(peer.rank))
        {
            return Ok(());
        }
        // `stop` wakes this thread.
        thread::park_timeout(if stopping { SHORT_TICK } else { TICK });
    }
}

/// Counts what has arrived.
fn receive(line: &Communicator, counts: &Counts) -> ferrompi::Result<()> {
    while let Some(message) = line.iprobe::<u8>(Source::Any, TAG)? {
        let source = message.source;
        let mut received = BEAT;
        line.recv(&mut received, source, TAG)?;
        if let Source::Rank(rank) = source {
            let rank = number(rank);
            match received {
                BYE => counts.settle(rank),
                _ => counts.add(rank),
            }
        }
    }
    Ok(())
}

impl<'s> Peer<'s> {
    /// Sends what is due, if the last message has left.
    fn send(
        &mut self,
        scope: &'s Scope<'s, '_>,
        line: &Communicator,
        stopping: bool,
    ) -> ferrompi::Result<()> {
        if let Some(sent) = &mut self.sent {
            if sent.test()?.is_none() {
                return Ok(());
            }
            self.sent = None;
        }
        let due = self.last.is_none_or(|last| last.elapsed() >= APART);
        if self.said_bye || !(due || stopping) {
            return Ok(());
        }
        let message: &'static [u8] = if stopping { &BYE } else { &BEAT };
        self.sent = Some(line.isend(scope, message, self.rank as i32, TAG)?);
        self.said_bye = stopping;
        self.last = Some(Instant::now());
        Ok(())
    }
}
