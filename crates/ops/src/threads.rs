use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rayon::Yield;

use crate::allocator::keep_freed_memory;

/// Starts the one pool of threads that all operations share; 0 is a thread for each core. To be
/// called once, first thing in a program.
pub fn start_threads(count: usize) -> Result<(), rayon::ThreadPoolBuildError> {
    keep_freed_memory();
    // Candle's own element-wise operations would start a second pool, whose threads spin while they
    // wait and take the cores from this one: a fifth of the CPU time of training the quickstart,
    // by profile. One thread means that candle makes no pool.
    //
    // SAFETY: `set_var` is unsound only while another thread reads the environment other than
    // through std. None of ours runs yet, and nothing that this crate links starts one by itself.
    #[allow(unsafe_code)]
    unsafe {
        std::env::set_var("CANDLE_NUM_THREADS", "1");
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(count)
        .stack_size(STACK)
        .build_global()
}

/// Candle walks the graph of a computation by recursion, on the thread that asks for gradients.
const STACK: usize = 64 << 20;

/// Runs work on a thread of the pool, which then shares in every operation of it, instead of handing
/// each over and sleeping until it is done.
pub fn on_pool<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    rayon::scope(|_| work())
}

/// Keeps the pool's other threads from falling asleep between the many short pieces of work that are to
/// come: they look for work until there has been none for a moment. A sleeping thread is slow to wake, most
/// of all in a virtual machine.
///
/// A thread may begin to look in the middle of a piece of work, where it waits for another's. That it looks
/// for [`LONGEST`] at most lets the piece go on.
pub(crate) fn stay_awake() {
    static AWAKE: AtomicBool = AtomicBool::new(false);
    let Some(caller) = rayon::current_thread_index() else {
        return;
    };
    if rayon::current_num_threads() == 1 || AWAKE.swap(true, Ordering::AcqRel) {
        return;
    }
    rayon::spawn_broadcast(move |thread| {
        if thread.index() != caller {
            look_for_work();
            AWAKE.store(false, Ordering::Release);
        }
    });
}

/// How long a thread looks for work that does not come.
const MOMENT: Duration = Duration::from_millis(2);
/// How long it looks at all, until it is asked again.
const LONGEST: Duration = Duration::from_millis(100);

fn look_for_work() {
    thread_local! {
        static LOOKING: Cell<bool> = const { Cell::new(false) };
    }
    if LOOKING.replace(true) {
        return;
    }
    let start = Instant::now();
    let mut last = start;
    while last.elapsed() < MOMENT && start.elapsed() < LONGEST {
        match rayon::yield_now() {
            Some(Yield::Executed) => last = Instant::now(),
            _ => std::thread::yield_now(),
        }
    }
    LOOKING.set(false);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;

    /// Work within work: threads wait in the middle of pieces, and others' come in between.
    #[test]
    fn threads_that_stay_awake_finish_work_within_work() {
        for threads in [1, 2, 3, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let sum: usize = pool.unwrap().install(|| {
                let rounds = (0..100).map(|_| {
                    stay_awake();
                    let rows = (0..8usize).into_par_iter().with_max_len(1);
                    rows.map(|i| {
                        stay_awake();
                        (0..50usize).into_par_iter().map(|j| i * j).sum::<usize>()
                    })
                    .sum::<usize>()
                });
                rounds.sum()
            });
            assert_eq!(sum, 100 * 28 * 1225);
        }
    }
}
