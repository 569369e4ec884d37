use std::time::Duration;

/// The count of a rank that is not listened to.
pub(super) const SETTLED: u64 = u64::MAX;

/// No step of the clock is longer. If this process was stopped for a while, so were perhaps the others: it listens
/// again before it says that they are silent.
const STEP: Duration = Duration::from_secs(1);

/// How long each rank has been silent.
pub(super) struct Silence {
    me: usize,
    timeout: Duration,
    /// What was counted of each rank, and for how long it is so.
    ranks: Vec<(u64, Duration)>,
}

impl Silence {
    pub(super) fn new(me: usize, size: usize, timeout: Duration) -> Self {
        Self {
            me,
            timeout,
            ranks: vec![(0, Duration::ZERO); size],
        }
    }

    /// Takes in how many messages were counted of each rank, some time after the last call. Returns the rank that was
    /// silent for too long. It is `me` if the thread that counts has stopped counting.
    pub(super) fn observe(
        &mut self,
        counts: impl Iterator<Item = u64>,
        elapsed: Duration,
    ) -> Option<usize> {
        let elapsed = elapsed.min(STEP);
        let mut lost = None;
        for (rank, (count, (last, silent))) in counts.zip(&mut self.ranks).enumerate() {
            *silent = match count == *last && count != SETTLED {
                true => *silent + elapsed,
                false => Duration::ZERO,
            };
            *last = count;
            if *silent > self.timeout {
                lost = lost.or(Some(rank));
            }
        }
        // If nothing is counted at all, no other rank is to blame.
        let (_, mine) = self.ranks[self.me];
        lost.map(|rank| {
            if mine > self.timeout / 2 {
                self.me
            } else {
                rank
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(100);

    /// After how many ticks a rank is lost, and which. `counts` tells what is counted at each tick.
    fn lost(counts: impl Fn(u64) -> [u64; 3], elapsed: Duration) -> Option<(u64, usize)> {
        let mut silence = Silence::new(1, 3, Duration::from_secs(5));
        (0..1000).find_map(|tick| {
            let lost = silence.observe(counts(tick).into_iter(), elapsed);
            lost.map(|rank| (tick, rank))
        })
    }

    #[test]
    fn a_rank_is_lost_when_nothing_new_was_counted_for_the_timeout() {
        assert_eq!(lost(|tick| [tick / 5, tick, tick / 10], TICK), None);
        assert_eq!(lost(|tick| [tick.min(20), tick, tick], TICK), Some((71, 0)));
        assert_eq!(lost(|tick| [tick, tick, 0], TICK), Some((50, 2)));
    }

    #[test]
    fn nobody_is_lost_who_has_said_that_it_ends() {
        let counts = |tick| [if tick < 20 { tick } else { SETTLED }, tick, SETTLED];
        assert_eq!(lost(counts, TICK), None);
    }

    #[test]
    fn a_thread_that_does_not_count_blames_no_other_rank() {
        let counts = |tick: u64| [tick.min(19) / 5, tick.min(19), tick.min(19) / 5];
        assert_eq!(lost(counts, TICK), Some((66, 1)));
    }

    #[test]
    fn a_process_that_was_stopped_for_an_hour_blames_nobody() {
        let hour = Duration::from_secs(3600);
        assert_eq!(lost(|tick| [tick / 2, tick, tick / 2], hour), None);
        assert_eq!(lost(|tick| [0, tick, tick], hour), Some((5, 0)));
    }
}
