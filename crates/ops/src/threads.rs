use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rayon::Yield;

/// Runs work on a thread of the pool. That thread then takes part in every parallel operation, instead of
/// handing each to the pool and sleeping until it is done.
pub fn on_pool<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    rayon::scope(|_| work())
}

/// Keeps the other threads of the pool from sleeping between many short tasks: they poll for work until
/// there was none for [`MOMENT`]. A sleeping thread is slow to wake, especially in a virtual machine.
///
/// A thread may start to poll inside a task, while it waits for another thread. It polls for at most
/// [`LONGEST`], so that the task can continue.
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

/// How long a thread polls without finding work.
const MOMENT: Duration = Duration::from_millis(2);
/// How long a thread polls in total, until the next call of [`stay_awake`].
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

    /// Nested parallel work: threads wait inside tasks and run other tasks meanwhile.
    #[test]
    fn threads_that_stay_awake_finish_nested_work() {
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
