use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::comm::{check_exchange, check_gather, check_root};
use crate::{Comm, Error, Result};

/// One of several ranks that are threads of one process, for tests.
///
/// Ranks that make different calls get an error. If one is dropped, because its thread has ended or panicked, the
/// others get an error from calls that wait for it.
pub struct Threads {
    rank: usize,
    size: usize,
    meeting: Arc<Meeting>,
}

/// Where all ranks come together for each call.
struct Meeting {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// How many calls were made by all ranks.
    round: u64,
    /// What the ranks that have come to this round bring.
    calls: Vec<Option<Call>>,
    /// What all ranks brought to the last round.
    last: Arc<Vec<Call>>,
    /// The first rank that is gone.
    lost: Option<usize>,
}

/// What one rank brings to a round.
#[derive(Default)]
struct Call {
    operation: &'static str,
    values: Vec<f32>,
    bytes: Vec<u8>,
    root: usize,
}

impl Threads {
    /// `count` ranks, in their order. Give one to each thread.
    pub fn of(count: usize) -> Vec<Self> {
        let mut state = State::default();
        state.calls.resize_with(count, || None);
        let meeting = Arc::new(Meeting {
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let rank = |rank| Self {
            rank,
            size: count,
            meeting: meeting.clone(),
        };
        (0..count).map(rank).collect()
    }

    /// Waits for all ranks, and returns what each of them brings.
    fn meet(&self, call: Call) -> Result<Arc<Vec<Call>>> {
        let operation = call.operation;
        let lost = |lost| Error::Lost {
            operation,
            rank: self.rank,
            size: self.size,
            lost,
        };
        let mut state = self.meeting.state();
        if let Some(rank) = state.lost {
            return Err(lost(rank));
        }
        if state.calls[self.rank].is_some() {
            let problem = "another thread has called the same rank".into();
            return Err(Error::lengths(self, operation, problem));
        }
        let round = state.round;
        state.calls[self.rank] = Some(call);
        if state.calls.iter().all(Option::is_some) {
            let calls = state.calls.iter_mut().filter_map(Option::take);
            state.last = Arc::new(calls.collect());
            state.round += 1;
            self.meeting.changed.notify_all();
        }
        while state.round == round {
            if let Some(rank) = state.lost {
                return Err(lost(rank));
            }
            let woken = self.meeting.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        let calls = state.last.clone();
        drop(state);
        match calls.iter().position(|call| call.operation != operation) {
            None => Ok(calls),
            Some(other) => Err(Error::Mismatch {
                operation,
                rank: self.rank,
                size: self.size,
                other,
                called: calls[other].operation,
            }),
        }
    }
}

impl Meeting {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.meeting.state().lost.get_or_insert(self.rank);
        self.meeting.changed.notify_all();
    }
}

impl Comm for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn exchange(&self, send: &[f32], receive: &mut [f32]) -> Result<()> {
        let part = check_exchange(self, send, receive)?;
        let calls = self.meet(Call {
            operation: "exchange",
            values: send.to_vec(),
            ..Call::default()
        })?;
        for (from, call) in calls.iter().enumerate() {
            self.check_equal(&call.values, send, "exchange", from)?;
            let mine = &call.values[self.rank * part..][..part];
            receive[from * part..][..part].copy_from_slice(mine);
        }
        Ok(())
    }

    fn gather(&self, send: &[f32], receive: &mut [f32]) -> Result<()> {
        check_gather(self, send, receive)?;
        let calls = self.meet(Call {
            operation: "gather",
            values: send.to_vec(),
            ..Call::default()
        })?;
        for (from, call) in calls.iter().enumerate() {
            self.check_equal(&call.values, send, "gather", from)?;
            receive[from * send.len()..][..send.len()].copy_from_slice(&call.values);
        }
        Ok(())
    }

    fn gather_bytes(&self, send: &[u8]) -> Result<Vec<Vec<u8>>> {
        let calls = self.meet(Call {
            operation: "gather_bytes",
            bytes: send.to_vec(),
            ..Call::default()
        })?;
        Ok(calls.iter().map(|call| call.bytes.clone()).collect())
    }

    fn broadcast(&self, bytes: &mut Vec<u8>, root: usize) -> Result<()> {
        check_root(self, root)?;
        let send = if self.rank == root {
            bytes.clone()
        } else {
            Vec::new()
        };
        let calls = self.meet(Call {
            operation: "broadcast",
            bytes: send,
            root,
            ..Call::default()
        })?;
        if let Some(other) = calls.iter().position(|call| call.root != root) {
            let problem = format!(
                "the root is {root} here, but {} on rank {other}",
                calls[other].root
            );
            return Err(Error::lengths(self, "broadcast", problem));
        }
        bytes.clone_from(&calls[root].bytes);
        Ok(())
    }

    fn barrier(&self) -> Result<()> {
        let call = Call {
            operation: "barrier",
            ..Call::default()
        };
        self.meet(call).map(drop)
    }
}

impl Threads {
    /// Checks that rank `from` brings as many values as this one.
    fn check_equal(
        &self,
        values: &[f32],
        send: &[f32],
        operation: &'static str,
        from: usize,
    ) -> Result<()> {
        if values.len() != send.len() {
            let (here, there) = (send.len(), values.len());
            let problem = format!("{here} values here, but {there} on rank {from}");
            return Err(Error::lengths(self, operation, problem));
        }
        Ok(())
    }
}
