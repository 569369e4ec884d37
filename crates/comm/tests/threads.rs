//! Ranks that are threads.

mod checks;

use std::thread::{self, ScopedJoinHandle};

use attend_comm::{Comm, Error, Result, Threads};

/// What each rank returns, or `None` if it panicked.
fn run<T: Send>(count: usize, rank: impl Fn(Threads) -> T + Sync) -> Vec<Option<T>> {
    thread::scope(|scope| {
        let start = |comm| scope.spawn(|| rank(comm));
        let ranks: Vec<ScopedJoinHandle<T>> = Threads::of(count).into_iter().map(start).collect();
        ranks.into_iter().map(|rank| rank.join().ok()).collect()
    })
}

#[test]
fn up_to_five_ranks_receive_what_they_should() {
    for count in 1..=5 {
        let hashes = run(count, |comm| checks::all(&comm));
        assert!(matches!(hashes[0], Some(Ok(_))), "{:?}", hashes[0]);
        assert_eq!(hashes, vec![hashes[0].clone(); count]);
    }
}

/// What the ranks that are left get when rank 1 of 3 does something else.
fn without_rank_1(rank_1: impl Fn(Threads) -> Result<()> + Sync) -> Vec<Option<Result<()>>> {
    run(3, |comm| {
        comm.barrier()?;
        match comm.rank() {
            1 => rank_1(comm),
            _ => comm.sum(&mut [1.0; 10]),
        }
    })
}

#[test]
fn a_rank_that_ends_early_or_panics_does_not_leave_the_others_waiting() {
    let ended = without_rank_1(|_| Ok(()));
    let panicked = without_rank_1(|_| panic!("on purpose"));
    for results in [ended, panicked] {
        for rank in [0, 2] {
            let Some(Err(Error::Lost { lost: 1, .. })) = results[rank] else {
                panic!("{:?}", results[rank]);
            };
        }
    }
}

#[test]
fn ranks_that_make_different_calls_get_an_error() {
    let results = without_rank_1(|comm| comm.barrier());
    for result in results {
        let Some(Err(Error::Mismatch { .. } | Error::Lost { .. })) = result else {
            panic!("{result:?}");
        };
    }
    let results = run(2, |comm| {
        comm.gather(
            &vec![0.0; comm.rank() + 1],
            &mut vec![0.0; 2 * comm.rank() + 2],
        )
    });
    let lengths = |result: &Option<Result<()>>| matches!(result, Some(Err(Error::Lengths { .. })));
    assert!(results.iter().all(lengths), "{results:?}");
}
