//! What the programs share and libraries must not decide: the allocator, the thread pool, the device, the log,
//! the terminal, the version, and how errors are printed.

mod compute;
mod error;
mod log;
mod process;
mod progress;
mod shell;
mod stderr;
mod terminal;
mod version;

pub use compute::{ComputeArgs, DeviceArg};
pub use error::{Error, report};
pub use log::start_log;
pub use process::release_memory;
pub use progress::Bars;
pub use shell::{CompletionsArgs, ManArgs};
pub use terminal::{Bar, bar, print_line, set_rank};
pub use version::VERSION;
