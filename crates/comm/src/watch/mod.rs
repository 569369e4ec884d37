//! Notices ranks that are lost, and ends the job.
//!
//! Each rank has two threads. With MPI, the *owner* starts MPI, sends and receives heartbeats, and finalizes MPI. It never
//! waits for a message. (Without MPI, heartbeats are files: see [`crate::rendezvous`].) The *checker* makes no call of
//! MPI, so it goes on if the MPI library does not return: it ends the process if another rank, or the owner, was silent
//! for too long.
//!
//! Heartbeats go between rank 0 and every other rank. So rank 0 notices if any other is lost, and the others notice if
//! rank 0 is lost or their own link is cut. They exit without finalizing MPI, so the launcher ends all.

#[cfg(feature = "mpi")]
mod beats;
mod checker;
mod ending;
#[cfg(feature = "mpi")]
mod owner;
mod ranks;
mod silence;
mod timeout;

pub(crate) use checker::{Counts, check};
#[cfg(feature = "mpi")]
pub(crate) use ending::end_panicked;
pub(crate) use ending::name_rank_of_panics;
#[cfg(feature = "mpi")]
pub(crate) use owner::Owner;
pub(crate) use ranks::Ranks;
pub(crate) use timeout::Timeout;
