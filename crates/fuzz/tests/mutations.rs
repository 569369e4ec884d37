//! Every target with its seeds and some mutations of them.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use attend_fuzz::mutate::Mutator;
use attend_fuzz::{TARGETS, Target, keep_panics_silent, outcome};

/// Mutations for each target, and for one that is slow.
const MUTATIONS: u64 = 3000;
const FEW_MUTATIONS: u64 = 400;
const SLOW: &str = "train_unigram";
/// The longest time for one input.
const LONGEST: Duration = Duration::from_secs(2);
/// The most memory that this process may have held, in KB.
#[cfg(target_os = "linux")]
const MOST_MEMORY: u64 = 512 << 10;

/// The input that a thread is working on, and since when.
type Current = Arc<Mutex<(Instant, Vec<u8>)>>;

/// Runs all inputs of a target.
fn check(target: &Target, current: &Current) -> Result<(), String> {
    let seeds = target
        .seeds()
        .map_err(|error| format!("{}: {error}", target.name))?;
    let seeds: Vec<Vec<u8>> = seeds.into_iter().map(|(_, bytes)| bytes).collect();
    let mutator = Mutator::new(&seeds);
    let count = match target.name {
        SLOW => FEW_MUTATIONS,
        _ => MUTATIONS,
    };
    let mutations = (0..count).map(|index| mutator.mutation(index));
    for bytes in seeds.iter().cloned().chain(mutations) {
        *current.lock().unwrap() = (Instant::now(), bytes.clone());
        outcome(target, &bytes)?;
    }
    Ok(())
}

#[test]
fn no_seed_and_no_mutation_of_one_panics_hangs_or_fills_the_memory() -> Result<(), String> {
    // The message of a failed assertion would not be seen either, so failures are returned.
    keep_panics_silent();
    for targets in TARGETS.chunks(2) {
        let (sender, results) = mpsc::channel();
        let mut running: Vec<(&str, Current)> = Vec::new();
        for target in targets {
            let current: Current = Arc::new(Mutex::new((Instant::now(), Vec::new())));
            running.push((target.name, current.clone()));
            let sender = sender.clone();
            // Not a scoped thread: one that hangs must not keep the test from failing.
            thread::spawn(move || sender.send(check(target, &current)));
        }
        drop(sender);
        loop {
            match results.recv_timeout(LONGEST / 20) {
                Ok(result) => result?,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            for (name, current) in &running {
                let (since, input) = &*current.lock().unwrap();
                let hangs = Arc::strong_count(current) > 1 && since.elapsed() > LONGEST;
                if hangs {
                    return Err(format!("{name}: hangs\ninput: {}", input.escape_ascii()));
                }
            }
        }
    }
    #[cfg(target_os = "linux")]
    if peak_memory() > MOST_MEMORY {
        return Err(format!("{} KB of memory", peak_memory()));
    }
    Ok(())
}

/// The most memory that this process has held, in KB.
#[cfg(target_os = "linux")]
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|peak| peak.trim().strip_suffix(" kB"));
    peak.expect("the peak").trim().parse().unwrap()
}

#[test]
fn every_target_has_seeds_and_they_are_small() {
    let mut total = 0;
    for target in TARGETS {
        let seeds = target.seeds().unwrap_or_default();
        assert!(!seeds.is_empty(), "{} has no seeds", target.name);
        total += seeds.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
    }
    assert!(total < 200_000, "the seeds have {total} bytes");
}
