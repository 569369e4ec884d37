//! What the programs share and libraries must not decide: the allocator, the thread pool, the device, the log,
//! and how errors are printed.

mod compute;
mod error;
mod log;
mod process;

pub use compute::{ComputeArgs, DeviceArg};
pub use error::{Error, report};
pub use log::start_log;
pub use process::{release_memory, start_threads};
