use std::fmt::Display;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use ferrompi::{Communicator, ThreadLevel};

use super::beats::beat;
use super::checker::{Counts, check};
use super::ending::{end_lost, name_rank_of_panics};
use super::ranks::Ranks;
use super::timeout::Timeout;
use crate::launch::Launch;
use crate::mpi::{gather_bytes, number};
use crate::{Error, Result};

/// The thread that starts MPI, sends heartbeats, and finalizes MPI: that must be done by the thread that started it.
pub(crate) struct Owner {
    thread: JoinHandle<()>,
    stop: Arc<AtomicBool>,
}

impl Owner {
    /// Starts the thread. It sends the communicator of all ranks when they are connected.
    pub(crate) fn start(
        launch: Launch,
        timeout: Timeout,
        ready: Sender<Result<Communicator>>,
    ) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let own = move || {
            if let Err(error) = own(launch, timeout, &ready, &stopped) {
                // If nobody waits for it, the program has ended.
                let _ = ready.send(Err(error));
            }
        };
        let thread = thread::Builder::new().name("mpi".into()).spawn(own);
        let thread = thread.map_err(start)?;
        Ok(Self { thread, stop })
    }

    /// Stops the heartbeat and finalizes MPI, when the other ranks do so as well.
    pub(crate) fn finish(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        // It does not panic; if it did, the panic is printed.
        let _ = self.thread.join();
    }
}

fn own(
    launch: Launch,
    timeout: Timeout,
    ready: &Sender<Result<Communicator>>,
    stop: &AtomicBool,
) -> Result<()> {
    let mpi = ferrompi::Mpi::init_thread(ThreadLevel::Multiple).map_err(start)?;
    // On every way out but the last of this function, MPI is not finalized.
    let mpi = ManuallyDrop::new(mpi);
    let world = mpi.world();
    let library = || {
        let version = ferrompi::Mpi::library_version().unwrap_or_default();
        let name = version.split([',', '\n']).next().unwrap_or_default();
        name.trim().to_string()
    };
    let found = number(world.size());
    if found != launch.size {
        return Err(Error::OtherLauncher {
            launched: launch.size,
            variable: launch.variable,
            found,
            library: library(),
        });
    }
    if mpi.thread_level() < ThreadLevel::Multiple {
        return Err(Error::ThreadLevel {
            provided: format!("{:?}", mpi.thread_level()),
            library: library(),
        });
    }
    // Heartbeats go beside the messages of the program.
    let line = world.duplicate().map_err(start)?;
    let ranks = Arc::new(ranks(&line).map_err(start)?);
    name_rank_of_panics(&ranks);
    let counts = Arc::new(Counts::new(&ranks));
    let checking = (ranks.clone(), counts.clone());
    let (until_now, until) = channel();
    let checker = move || check(&checking.0, &checking.1, timeout, &until);
    let checker = thread::Builder::new().name("ranks".into()).spawn(checker);
    checker.map_err(start)?;
    if ready.send(Ok(world)).is_err() {
        return Ok(());
    }

    let end = |error: ferrompi::Error| -> ! {
        let name = ranks.name(ranks.me);
        end_lost(&format!("{name}: the heartbeat failed: {error}"))
    };
    // The scope would wait for messages on their way before it returned an error.
    let beating = ferrompi::scope(|scope| {
        beat(scope, &line, &ranks, &counts, stop).unwrap_or_else(|error| end(error));
        Ok(())
    });
    beating.unwrap_or_else(|error| end(error));
    drop(line);
    drop(ManuallyDrop::into_inner(mpi));
    // Until here the checker watches that MPI returns.
    drop(until_now);
    Ok(())
}

/// Asks every rank for the name of its machine.
fn ranks(world: &Communicator) -> ferrompi::Result<Ranks> {
    let host = world.processor_name()?;
    let hosts = gather_bytes(world, host.as_bytes())?;
    let hosts = hosts.iter().map(|host| String::from_utf8_lossy(host));
    Ok(Ranks::new(
        number(world.rank()),
        hosts.map(String::from).collect(),
    ))
}

fn start(problem: impl Display) -> Error {
    Error::Start {
        library: "MPI",
        problem: problem.to_string(),
    }
}
