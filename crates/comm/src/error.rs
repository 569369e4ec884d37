use std::path::PathBuf;

use crate::Comm;
use crate::connect::RENDEZVOUS;

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Each message is one line that names the problem and its place. [`Error::hint`] says how to fix it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program was launched as one of several ranks, but is built without MPI. `variable` is where the launcher
    /// says so.
    #[error(
        "launched as one of {launched} ranks ({variable}={launched}), but this build lacks MPI"
    )]
    NoMpi {
        launched: usize,
        variable: &'static str,
    },

    /// The launcher is of another MPI than the program's.
    #[error(
        "launched as one of {launched} ranks ({variable}={launched}), but MPI found {found}: the launcher is of \
         another MPI library than the one this program is linked to{}",
        named(library)
    )]
    OtherLauncher {
        launched: usize,
        variable: &'static str,
        found: usize,
        /// The library that the program is linked to, as it calls itself.
        library: String,
    },

    /// The MPI library allows calls from one thread only. The heartbeat needs two.
    #[error(
        "the MPI library supports the thread level {provided}, but Multiple is needed{}",
        named(library)
    )]
    ThreadLevel { provided: String, library: String },

    /// NCCL connects GPUs, and not all ranks have one.
    #[error("of rank 0 and rank {rank}, only one computes on a GPU")]
    OtherDevice { rank: usize },

    /// A variable of the environment has a value that cannot be used.
    #[error("the environment has {variable}={value}, which is not {expected}")]
    Environment {
        variable: &'static str,
        value: String,
        expected: &'static str,
    },

    /// An operation was called with slices that do not fit together.
    #[error("{operation} on rank {rank} of {size}: {problem}")]
    Lengths {
        operation: &'static str,
        rank: usize,
        size: usize,
        problem: String,
    },

    /// The ranks made different calls.
    #[error("rank {rank} of {size} called {operation}, while rank {other} called {called}")]
    Mismatch {
        operation: &'static str,
        rank: usize,
        size: usize,
        other: usize,
        called: &'static str,
    },

    /// Another rank is gone.
    #[error("{operation} on rank {rank} of {size}: rank {lost} has ended")]
    Lost {
        operation: &'static str,
        rank: usize,
        size: usize,
        lost: usize,
    },

    /// The library that communicates, or the device, reports an error.
    #[error("{operation} on rank {rank} of {size} failed: {problem}")]
    Failed {
        operation: &'static str,
        rank: usize,
        size: usize,
        problem: String,
    },

    /// A value could not be written for other ranks, or is not what another rank should have sent.
    #[error("ranks cannot exchange a value: {0}")]
    Value(String),

    /// MPI or NCCL could not be started.
    #[error("cannot start {library}: {problem}")]
    Start {
        library: &'static str,
        problem: String,
    },

    /// The ranks could not find each other by files.
    #[error("{}: {problem}", folder.display())]
    Rendezvous { folder: PathBuf, problem: String },
}

fn named(library: &str) -> String {
    match library {
        "" => String::new(),
        name => format!(" ({name})"),
    }
}

impl Error {
    pub(crate) fn lengths<C: Comm + ?Sized>(
        comm: &C,
        operation: &'static str,
        problem: String,
    ) -> Self {
        Self::Lengths {
            operation,
            rank: comm.rank(),
            size: comm.size(),
            problem,
        }
    }

    /// An error of candle.
    pub(crate) fn tensor<C: Comm + ?Sized>(
        comm: &C,
        operation: &'static str,
        error: candle_core::Error,
    ) -> Self {
        Self::Failed {
            operation,
            rank: comm.rank(),
            size: comm.size(),
            problem: error.to_string(),
        }
    }

    /// How to fix it, if there is something that the user can do.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::OtherDevice { .. } => {
                "give all of them the same device: --device cuda, or --device cpu".into()
            }
            Self::NoMpi { .. } if cfg!(feature = "nccl") => format!(
                "compute on GPUs, and name a folder that all ranks can write in {RENDEZVOUS}; or build it with \
                 `cargo build --release --features mpi`"
            ),
            Self::NoMpi { variable, .. } => format!(
                "build it with `cargo build --release --features mpi`, or unset {variable} if each rank is to train a \
                 model of its own"
            ),
            Self::OtherLauncher { variable, .. } => format!(
                "use the `mpirun` of that library, or build the program again with the library of the launcher; unset \
                 {variable} if each rank is to train a model of its own"
            ),
            Self::ThreadLevel { .. } => {
                "use an MPI library that is built with MPI_THREAD_MULTIPLE; Open MPI and MPICH have it by default"
                    .into()
            }
            Self::Environment { variable, .. } => format!("correct or unset {variable}"),
            Self::Failed { .. } => {
                "the message of the rank that failed first is the cause; resume the run from its last checkpoint".into()
            }
            Self::Start { library: "MPI", .. } => {
                "run `mpirun -n 2 hostname` to see whether the launcher works on its own".into()
            }
            Self::Start { library: "NCCL", .. } => {
                "NCCL 2.30 or newer must be installed where the linker finds libnccl.so".into()
            }
            Self::Rendezvous { .. } => format!(
                "{RENDEZVOUS} must be a folder that all ranks can write, on a file system that their machines share"
            ),
            Self::Start { .. } | Self::Value(_) => return None,
            Self::Lengths { .. } | Self::Mismatch { .. } | Self::Lost { .. } => return None,
        };
        Some(hint)
    }
}
