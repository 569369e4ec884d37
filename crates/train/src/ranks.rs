//! What the processes of one training decide together, and how they find out that they differ.

use attend_comm::{Comm, gather_values};
use attend_infer::run::{Provenance, TrainerState};
use attend_infer::sha256;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Ending, Error, Result, Run};

/// Parameters are compared after this many updates.
const COMPARE_EVERY: u64 = 100;

impl Run {
    /// An error if a rank has other parameters than the first one, which a fault of the memory or the network could
    /// cause. Checked once in many updates.
    pub(crate) fn check_drift(&self) -> Result<()> {
        let (comm, step) = (&*self.compute.comm, self.state.step);
        if comm.is_alone() || !step.is_multiple_of(COMPARE_EVERY) {
            return Ok(());
        }
        match first_different(&gather_values(comm, &self.optimizer.fingerprint()?)?) {
            None => Ok(()),
            Some(rank) => Err(Error::Drifted { rank, step }),
        }
    }
}

/// Why training ends on all ranks: by a signal to any of them, or else for a reason that all of them have.
pub(crate) fn agreed_ending(ending: Option<Ending>, comm: &dyn Comm) -> Result<Option<Ending>> {
    let all = gather_values(comm, &ending)?;
    let signals = all.iter().flatten().copied();
    let mut signals = signals.filter(|ending| matches!(ending, Ending::Signal(_)));
    Ok(signals.next().or(all[0]))
}

/// The number that the first rank has.
pub(crate) fn of_first(number: f64, comm: &dyn Comm) -> Result<f64> {
    let mut numbers = [if comm.is_first() { number } else { 0.0 }];
    comm.sum_f64(&mut numbers)?;
    Ok(numbers[0])
}

/// A number of ranks, in words.
pub(crate) fn count(ranks: usize) -> String {
    match ranks {
        1 => "1 process".to_string(),
        ranks => format!("{ranks} ranks"),
    }
}

/// Whether the first rank could do what only it does.
pub(crate) fn first_did(done: bool, comm: &dyn Comm) -> Result<bool> {
    let mut done = vec![u8::from(done)];
    comm.broadcast(&mut done, 0)?;
    Ok(done == [1])
}

/// An error if the ranks do not train the same.
pub(crate) fn check_alike(
    provenance: &Provenance,
    state: &TrainerState,
    comm: &dyn Comm,
) -> Result<()> {
    // What the ranks compute may differ in rounding, since only one of them updates a parameter.
    let same = ["config", "training data", "validation data"];
    let entries = provenance.entries().into_iter();
    let mut parts: Vec<(String, String)> = entries
        .filter(|(name, _)| same.contains(&name.as_str()) || name.ends_with("tokenizer"))
        .collect();
    let state = serde_json::to_vec(state).map_err(candle_core::Error::wrap)?;
    parts.push(("checkpoint".into(), sha256(&state)));
    let all = gather_values(comm, &parts)?;
    let Some(rank) = first_different(&all) else {
        return Ok(());
    };
    let mut parts = all[0].iter().zip(&all[rank]);
    let differing = parts.find(|(first, own)| first != own);
    let what = differing.map_or("config".to_string(), |((what, _), _)| what.clone());
    Err(Error::RanksDiffer { rank, what })
}

/// An error if a rank has another value than the first. Waits for all.
pub(crate) fn check_same<T>(own: &T, what: &str, comm: &dyn Comm) -> Result<()>
where
    T: PartialEq + Serialize + DeserializeOwned,
{
    match first_different(&gather_values(comm, own)?) {
        None => Ok(()),
        Some(rank) => Err(Error::RanksDiffer {
            rank,
            what: what.to_string(),
        }),
    }
}

/// Does it on the first rank, and then on the others, which find what the first one has made.
pub(crate) fn first_then_others<T>(comm: &dyn Comm, work: impl FnOnce() -> Result<T>) -> Result<T> {
    if !comm.is_first() {
        comm.barrier()?;
    }
    let done = work()?;
    if comm.is_first() {
        comm.barrier()?;
    }
    Ok(done)
}

/// The first rank that does not have what rank 0 has.
fn first_different<T: PartialEq>(all: &[T]) -> Option<usize> {
    all.iter().position(|one| *one != all[0])
}
