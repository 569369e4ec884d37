use std::any::Any;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use candle_core::cuda_backend::cudarc::driver::CudaStream;
use candle_core::cuda_backend::cudarc::nccl::{Comm, Id, result::NcclError};

use crate::{Error, Result};

/// The thread that calls NCCL, whose communicators belong to one thread at a time. A call returns when its work is on
/// the stream of the GPU, not when it is done.
pub(super) struct Queue(Sender<Call>);

type Call = Box<dyn FnOnce(&Comm) + Send>;

/// Why a call has failed.
pub(super) struct Failure(String);

impl Queue {
    pub(super) fn start(
        stream: Arc<CudaStream>,
        rank: usize,
        size: usize,
        id: &[u8],
    ) -> Result<Self> {
        let mut internal = [0; 128];
        for (to, &byte) in internal.iter_mut().zip(id) {
            *to = byte as _;
        }
        let (calls, next) = channel::<Call>();
        let (ready, connected) = channel();
        let run = move || match Comm::from_rank(stream, rank, size, Id::uninit(internal)) {
            Err(error) => drop(ready.send(Err(error))),
            Ok(comm) => {
                // If nobody waits for it, the program has ended, and there are no calls.
                let _ = ready.send(Ok(()));
                next.iter().for_each(|call| call(&comm));
            }
        };
        let thread = thread::Builder::new().name("nccl".into()).spawn(run);
        thread.map_err(start)?;
        match connected.recv() {
            Ok(Ok(())) => Ok(Self(calls)),
            Ok(Err(error)) => Err(start(format!("{error:?}"))),
            // It has panicked, as cudarc does if there is no NCCL.
            Err(_) => Err(start("the library libnccl.so cannot be loaded")),
        }
    }

    /// What a call returns, or why it has failed.
    pub(super) fn call<T: Any + Send>(
        &self,
        call: impl FnOnce(&Comm) -> std::result::Result<T, Failure> + Send + 'static,
    ) -> std::result::Result<T, String> {
        let (done, result) = channel();
        let call = Box::new(move |comm: &Comm| drop(done.send(call(comm))));
        let ended = || "the thread that calls NCCL has ended".to_string();
        self.0.send(call).map_err(|_| ended())?;
        let result = result.recv().map_err(|_| ended())?;
        result.map_err(|Failure(problem)| problem)
    }
}

pub(super) fn start(problem: impl Display) -> Error {
    Error::Start {
        library: "NCCL",
        problem: problem.to_string(),
    }
}

impl From<&str> for Failure {
    fn from(problem: &str) -> Self {
        Self(problem.into())
    }
}

impl From<candle_core::Error> for Failure {
    fn from(error: candle_core::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<NcclError> for Failure {
    fn from(error: NcclError) -> Self {
        Self(format!("{error:?}"))
    }
}
