use std::io::Write;
use std::process;
use std::thread;
use std::time::Duration;

use super::ranks::Ranks;

/// The exit status of a job that can be resumed (`EX_TEMPFAIL`).
const LOST: i32 = 75;
/// That of a program that panicked.
#[cfg(feature = "mpi")]
const PANICKED: i32 = 101;

/// An ordinary exit calls functions of libraries, which may wait for other threads.
const PATIENCE: Duration = Duration::from_secs(5);

/// Prints the line and ends this process. MPI is not finalized, so the launcher ends the others.
pub(super) fn end_lost(line: &str) -> ! {
    abort_later();
    print(&format!(
        "{line}; ending the job, which can be resumed from its last checkpoint"
    ));
    process::exit(LOST)
}

/// Ends this process, which has printed its panic.
#[cfg(feature = "mpi")]
pub(crate) fn end_panicked(rank: usize, size: usize) -> ! {
    abort_later();
    print(&format!(
        "rank {rank} of {size} ends the job because of its panic"
    ));
    process::exit(PANICKED)
}

/// Says on which rank a panic was, after what is printed of it already. The process is not ended here: the panic of a
/// decoder of pictures, for instance, is caught and becomes an error that names the picture. One that is not caught
/// ends the program, and, as MPI is not finalized, the job.
pub(crate) fn name_rank_of_panics(ranks: &Ranks) {
    let line = format!("the panic above is of {}", ranks.name(ranks.me));
    let previous = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        previous(panic);
        print(&line);
    }));
}

/// Ends the process even if an exit does not, or if stderr takes nothing.
fn abort_later() {
    let abort = || {
        thread::sleep(PATIENCE);
        process::abort();
    };
    // Without another thread, there is only the ordinary exit.
    let _ = thread::Builder::new().name("abort".into()).spawn(abort);
}

/// In one piece, since the launcher mixes the output of all ranks. Nobody may be reading it any more.
fn print(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}
