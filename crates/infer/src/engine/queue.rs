use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::{Answers, Sentence};

/// What waits for the search.
///
/// Whoever asks for many sentences has one of them enter, then it is the turn of the next who asks. A part of the room
/// is kept for those who have nothing in the batch. So a document does not hold up a sentence.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    /// The sentences of each who asks; never empty.
    turns: VecDeque<VecDeque<Job>>,
    /// Sentences that are searched one by one.
    alone: VecDeque<Job>,
    calls: VecDeque<Call>,
    closed: bool,
}

/// A sentence, and who waits for it.
pub(super) struct Job {
    pub(super) sentence: Sentence,
    pub(super) client: Client,
}

/// Who waits.
pub(super) struct Client {
    pub(super) answers: Answers,
    given_up: Arc<AtomicBool>,
    /// How many of its sentences are in the batch.
    entered: Arc<AtomicUsize>,
}

impl Client {
    pub(super) fn enter(&self) {
        self.entered.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn leave(&self) {
        self.entered.fetch_sub(1, Ordering::Relaxed);
    }

    fn is_in_batch(&self) -> bool {
        self.entered.load(Ordering::Relaxed) > 0
    }

    pub(super) fn has_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }
}

pub(super) type Call = Box<dyn FnOnce() + Send>;

/// Held by whoever waits. Dropping it gives up the sentences that are not done.
#[derive(Default)]
pub(super) struct Ticket {
    given_up: Arc<AtomicBool>,
    entered: Arc<AtomicUsize>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.given_up.store(true, Ordering::Relaxed);
    }
}

impl Job {
    pub(super) fn new(sentence: Sentence, answers: Answers, ticket: &Ticket) -> Self {
        Self {
            sentence,
            client: Client {
                answers,
                given_up: ticket.given_up.clone(),
                entered: ticket.entered.clone(),
            },
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is locked; if something did, the state would still be whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the sentences of one who asks.
    pub(super) fn push(&self, jobs: VecDeque<Job>) {
        if !jobs.is_empty() {
            self.lock().turns.push_back(jobs);
            self.arrived.notify_one();
        }
    }

    pub(super) fn push_alone(&self, job: Job) {
        self.lock().alone.push_back(job);
        self.arrived.notify_one();
    }

    pub(super) fn push_call(&self, call: Call) {
        self.lock().calls.push_back(call);
        self.arrived.notify_one();
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_one();
    }

    /// Sentences that wait.
    pub(super) fn len(&self) -> usize {
        let state = self.lock();
        let turns: usize = state.turns.iter().map(VecDeque::len).sum();
        turns + state.alone.len()
    }

    /// Waits until there is something to do. False if nothing more comes.
    pub(super) fn wait(&self) -> bool {
        let idle = |state: &mut State| {
            let State {
                turns,
                alone,
                calls,
                closed,
            } = state;
            !*closed && turns.is_empty() && alone.is_empty() && calls.is_empty()
        };
        let waited = self.arrived.wait_while(self.lock(), idle);
        let state = waited.unwrap_or_else(PoisonError::into_inner);
        !(state.turns.is_empty() && state.alone.is_empty() && state.calls.is_empty())
    }

    pub(super) fn next_call(&self) -> Option<Call> {
        self.lock().calls.pop_front()
    }

    pub(super) fn has_alone(&self) -> bool {
        !self.lock().alone.is_empty()
    }

    pub(super) fn next_alone(&self) -> Option<Job> {
        let mut state = self.lock();
        state.alone.retain(|job| !job.client.has_given_up());
        state.alone.pop_front()
    }

    /// The sentences whose turn it is, which together take at most `free` of the room. None takes more than `part` of
    /// it, so that short ones can enter while long ones are searched; and as much is left for clients that have nothing
    /// in the batch.
    pub(super) fn next_group(&self, free: usize, part: usize) -> Vec<Job> {
        let mut state = self.lock();
        let mut left = free;
        let mut group: Vec<Job> = Vec::new();
        let mut later = VecDeque::new();
        while let Some(mut jobs) = state.turns.pop_front() {
            // Who gives up gives up all.
            let Some(first) = jobs.front_mut().filter(|job| !job.client.has_given_up()) else {
                continue;
            };
            let cost = &mut first.sentence.search.cost;
            *cost = (*cost).min(part);
            let cost = *cost;
            let is_new = !first.client.is_in_batch();
            if cost > left && is_new {
                state.turns.push_front(jobs); // nobody goes before it
                break;
            }
            if !is_new && cost + part > left {
                later.push_back(jobs);
                continue;
            }
            left -= cost;
            first.client.enter();
            group.extend(jobs.pop_front());
            if !jobs.is_empty() {
                state.turns.push_back(jobs);
            }
        }
        later.append(&mut state.turns);
        state.turns = later;
        group
    }
}
