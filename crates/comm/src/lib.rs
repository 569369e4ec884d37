//! Communication between the processes that train one model together.
//!
//! [`Comm`] is what a training loop knows of the other processes. [`connect`] returns the one that the program was
//! launched with: [`Solo`] for a single process, or `Mpi` (feature `mpi`) under `mpirun` or `srun`, or `Nccl` (feature
//! `nccl`) if it computes on GPUs. [`Threads`] are several ranks in one process, for tests.
//!
//! ```
//! use attend_comm::{Comm, Threads};
//!
//! let sums = std::thread::scope(|scope| {
//!     let start = |comm: Threads| {
//!         scope.spawn(move || {
//!             let mut values = [comm.rank() as f32, 1.0];
//!             comm.sum(&mut values).map(|()| values)
//!         })
//!     };
//!     let ranks: Vec<_> = Threads::of(3).into_iter().map(start).collect();
//!     let join = |rank: std::thread::ScopedJoinHandle<_>| rank.join().expect("no rank panics");
//!     ranks.into_iter().map(join).collect::<Result<Vec<_>, _>>()
//! })?;
//! assert_eq!(sums, [[3.0, 3.0]; 3]);
//! # Ok::<(), attend_comm::Error>(())
//! ```
//!
//! `mpirun` of Open MPI binds each of up to two ranks to one core, so that each computes with one thread. With
//! `--bind-to none` or `--map-by slot:PE=CORES` it does not.
//!
//! # When a process fails
//!
//! The processes of a job depend on each other: if one is lost, the others wait for it. So every failure ends the
//! whole job, which is then resumed from its last checkpoint.
//!
//! | one rank … | what ends the job |
//! |---|---|
//! | is killed, or returns an error | the launcher: the rank has not finalized MPI |
//! | panics | the same, with status 101; a line on stderr names the rank |
//! | is stopped, or its machine or network is down | the heartbeat: another rank exits with status 75 |
//! | does not come back from the MPI library at the end | its own heartbeat, with status 75 |
//!
//! A rank is lost if it was silent for 40 seconds. `ATTEND_RANK_TIMEOUT` is another number of seconds, at least 2. The
//! heartbeat has a thread of its own, so a rank that computes for minutes is not lost, and neither is a job of which
//! all ranks were suspended for a while. `srun` needs `--kill-on-bad-exit=1` to end the job when one rank exits.

mod comm;
mod connect;
mod error;
mod launch;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(feature = "nccl")]
mod nccl;
pub mod rendezvous;
mod share;
mod solo;
mod threads;
mod values;
mod watch;

pub use comm::Comm;
pub use connect::connect;
pub use error::{Error, Result};
pub use launch::{local_rank, local_size};
#[cfg(feature = "mpi")]
pub use mpi::Mpi;
#[cfg(feature = "nccl")]
pub use nccl::Nccl;
pub use share::share;
pub use solo::Solo;
pub use threads::Threads;
pub use values::{broadcast_value, gather_values};
