use std::fmt::Display;
use std::sync::Mutex;
use std::sync::mpsc::channel;

use ferrompi::Communicator;

use crate::comm::{check_exchange, check_gather, check_root};
use crate::launch::Launch;
use crate::watch::{Owner, Timeout};
use crate::{Comm, Error, Result};

/// The most bytes that go in one call: MPI counts in 32 bits.
const PIECE: usize = 1 << 30;

/// The processes of an MPI job. [`connect`](crate::connect) makes it.
///
/// If it is dropped without [`Comm::finish`], MPI is not finalized, so that the launcher ends the other ranks.
pub struct Mpi {
    world: Communicator,
    rank: usize,
    size: usize,
    /// The thread that started MPI. `None` after `finish`.
    owner: Mutex<Option<Owner>>,
}

impl Mpi {
    /// Starts MPI and the heartbeat.
    pub(crate) fn connect(launch: Launch, lookup: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let timeout = Timeout::of(lookup)?;
        let (ready, connected) = channel();
        let owner = Owner::start(launch, timeout, ready)?;
        let world = connected.recv().map_err(|_| Error::Start {
            library: "MPI",
            problem: "its thread has ended".into(),
        })??;
        Ok(Self {
            rank: number(world.rank()),
            size: number(world.size()),
            world,
            owner: Mutex::new(Some(owner)),
        })
    }

    /// An error of a call.
    fn failed(&self, operation: &'static str) -> impl Fn(ferrompi::Error) -> Error {
        let (rank, size) = (self.rank, self.size);
        move |error| failed(operation, rank, size, error)
    }
}

/// MPI's ranks and sizes are not negative.
pub(crate) fn number(rank: i32) -> usize {
    usize::try_from(rank).unwrap_or(0)
}

pub(crate) fn failed(
    operation: &'static str,
    rank: usize,
    size: usize,
    problem: impl Display,
) -> Error {
    Error::Failed {
        operation,
        rank,
        size,
        problem: problem.to_string(),
    }
}

impl Comm for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn exchange(&self, send: &[f32], receive: &mut [f32]) -> Result<()> {
        check_exchange(self, send, receive)?;
        let exchanged = self.world.alltoall(send, receive);
        exchanged.map_err(self.failed("exchange"))
    }

    fn gather(&self, send: &[f32], receive: &mut [f32]) -> Result<()> {
        check_gather(self, send, receive)?;
        let gathered = self.world.allgather(send, receive);
        gathered.map_err(self.failed("gather"))
    }

    fn gather_bytes(&self, send: &[u8]) -> Result<Vec<Vec<u8>>> {
        gather_bytes(&self.world, send).map_err(self.failed("gather_bytes"))
    }

    fn broadcast(&self, bytes: &mut Vec<u8>, root: usize) -> Result<()> {
        check_root(self, root)?;
        let failed = self.failed("broadcast");
        let mut length = [bytes.len() as u64];
        let sent = self.world.broadcast(&mut length, root as i32);
        sent.map_err(&failed)?;
        bytes.resize(length[0] as usize, 0);
        for piece in bytes.chunks_mut(PIECE) {
            let sent = self.world.broadcast(piece, root as i32);
            sent.map_err(&failed)?;
        }
        Ok(())
    }

    fn barrier(&self) -> Result<()> {
        self.world.barrier().map_err(self.failed("barrier"))
    }

    /// Waits for all ranks, stops the heartbeat, and finalizes MPI. Later calls are errors, except this one.
    fn finish(&self) -> Result<()> {
        let owner = self.owner.lock().map_or(None, |mut owner| owner.take());
        let Some(owner) = owner else {
            return Ok(());
        };
        self.barrier()?;
        owner.finish();
        Ok(())
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        // The other ranks may wait for this one, and what is dropped after this may wait for its threads.
        if std::thread::panicking() {
            crate::watch::end_panicked(self.rank, self.size);
        }
    }
}

/// What every rank sends, in rank order. No call has more than [`PIECE`] bytes.
pub(crate) fn gather_bytes(world: &Communicator, send: &[u8]) -> ferrompi::Result<Vec<Vec<u8>>> {
    let size = number(world.size());
    let mut lengths = vec![0; size];
    world.allgather(&[send.len() as u64], &mut lengths)?;
    let lengths: Vec<usize> = lengths.iter().map(|&length| length as usize).collect();
    let mut received: Vec<Vec<u8>> = lengths.iter().map(|&n| Vec::with_capacity(n)).collect();
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let piece = (PIECE / size.max(1)).max(1);
    let mut buffer = Vec::new();
    for start in (0..longest).step_by(piece) {
        let count = |length: usize| length.saturating_sub(start).min(piece);
        let counts: Vec<i32> = lengths.iter().map(|&n| count(n) as i32).collect();
        let mut total = 0;
        let mut offsets = Vec::with_capacity(size);
        for &count in &counts {
            offsets.push(total);
            total += count;
        }
        buffer.resize(total as usize, 0);
        let mine = send.get(start..).unwrap_or_default();
        let mine = &mine[..mine.len().min(piece)];
        world.allgatherv(mine, &mut buffer, &counts, &offsets)?;
        let mut rest = &buffer[..];
        for (received, &count) in received.iter_mut().zip(&counts) {
            let (bytes, others) = rest.split_at(count as usize);
            received.extend_from_slice(bytes);
            rest = others;
        }
    }
    Ok(received)
}
