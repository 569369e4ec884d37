//! What a process sets once, before it has threads: its allocator and its thread pool. The only file outside
//! `ops` with `unsafe`.
#![allow(unsafe_code)]

use libmimalloc_sys::{mi_collect, mi_option_set_default, mi_option_t};

use crate::Error;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of mimalloc 3, which its bindings do not name.
const PURGE_DELAY: mi_option_t = 15;
/// One minute, in milliseconds.
const KEPT: i32 = 60_000;
/// Candle walks a computation's graph by recursion, on the thread that asks for gradients.
const STACK_BYTES: usize = 64 << 20;

/// More threads than this for each core only wait for each other.
const THREADS_PER_CORE: usize = 4;
/// What is accepted on any machine.
const FEW_THREADS: usize = 16;

/// Starts the thread pool that all operations share; 0 is one thread for each core. Call it once, before
/// anything computes.
pub(crate) fn start_threads(count: usize) -> Result<(), Error> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let most = (THREADS_PER_CORE * cores).max(FEW_THREADS);
    if count > most {
        return Err(Error {
            message: format!("--threads {count}: this machine has {cores} cores"),
            hint: format!("give at most {most}, or leave it out for one thread on each core"),
        });
    }
    disable_candle_pool();
    rayon::ThreadPoolBuilder::new()
        .num_threads(count)
        .stack_size(STACK_BYTES)
        .build_global()
        .map_err(|error| Error {
            message: format!("cannot start {count} threads: {error}"),
            hint: "give --threads at most the number of cores".into(),
        })
}

/// Keeps freed memory for up to a minute instead of a second: a training step allocates again what the last one
/// freed, and the system clears every page that it has had in between. `MIMALLOC_PURGE_DELAY` in the environment
/// overrides it. Call it before there are threads.
pub(crate) fn keep_freed_memory() {
    // SAFETY: it takes two numbers and no pointer. It writes, without a lock, what `malloc` reads; no other
    // thread runs yet, as is demanded.
    unsafe {
        mi_option_set_default(PURGE_DELAY, KEPT.into());
    }
}

/// Candle's element-wise operations would start a second pool, whose threads spin while they wait and take the
/// cores from ours: a fifth of the CPU time of training the quickstart, by profile. With one thread candle
/// starts none.
fn disable_candle_pool() {
    // SAFETY: `set_var` is unsound only while another thread reads the environment other than through std. No
    // other thread runs yet, as `start_threads` demands.
    unsafe {
        std::env::set_var("CANDLE_NUM_THREADS", "1");
    }
}

/// Returns freed memory to the system, such as what reading a corpus took.
pub fn release_memory() {
    // SAFETY: it takes no pointer, may be called at any time, and touches only freed memory.
    unsafe {
        mi_collect(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_the_delay_before_freed_memory_is_returned() {
        // SAFETY: it takes a number and returns one.
        let delay = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        assert_eq!(delay(), 1000, "mimalloc's default");
        keep_freed_memory();
        assert_eq!(delay(), 60_000);
    }
}
