use std::collections::HashMap;

use attend_batch::Packed;

use super::Outcome;
use super::queue::{Client, Job, Queue};
use crate::search::{Feed, Found, Group};
use crate::{Error, Result};

/// The parts of the room of which a sentence takes at most one, and one is left for clients that have none in it.
const PARTS: usize = 4;

/// Gives what waits in a queue to a search.
pub(super) struct Live<'q> {
    queue: &'q Queue,
    room: usize,
    /// Sentences in the batch, by the number that the search knows them by.
    entered: HashMap<usize, Entered>,
    next_number: usize,
    /// Whether the batch is one sentence that was in a batch that failed.
    alone: bool,
}

/// A sentence in the batch.
struct Entered {
    /// The number that its client knows it by.
    number: usize,
    client: Client,
}

impl<'q> Live<'q> {
    pub(super) fn new(queue: &'q Queue, room: usize) -> Self {
        Self {
            queue,
            room,
            entered: HashMap::new(),
            next_number: 0,
            alone: false,
        }
    }

    /// The search has failed. Each sentence of the batch is searched again, alone, unless it was.
    pub(super) fn fail(self, error: Error) {
        let mut error = Some(error);
        for Entered { number, client } in self.entered.into_values() {
            client.leave();
            let outcome = match error.take_if(|_| self.alone) {
                Some(error) => Outcome::Failed(error),
                None => Outcome::Again,
            };
            // Nobody may wait any more.
            let _ = client.answers.send((number, outcome));
        }
    }

    fn enter(&mut self, jobs: Vec<Job>) -> Group {
        let sources: Vec<&[u32]> = jobs.iter().map(|job| &*job.sentence.tokens).collect();
        let source = Packed::of_sentences(&sources).into();
        let mut searches = Vec::with_capacity(jobs.len());
        for Job { sentence, client } in jobs {
            let number = sentence.number;
            self.entered
                .insert(self.next_number, Entered { number, client });
            searches.push((self.next_number, sentence.search));
            self.next_number += 1;
        }
        Group { source, searches }
    }
}

impl Feed for Live<'_> {
    fn next(&mut self, free: usize) -> Option<Result<Group>> {
        if let Some(call) = self.queue.next_call() {
            call();
        }
        let is_empty = free == usize::MAX;
        if self.alone && !is_empty {
            return None;
        }
        self.alone = false;
        if self.queue.has_alone() {
            if !is_empty {
                return None; // until the batch is empty
            }
            if let Some(job) = self.queue.next_alone() {
                self.alone = true;
                job.client.enter();
                return Some(Ok(self.enter(vec![job])));
            }
        }
        let part = (self.room / PARTS).max(1);
        let jobs = self.queue.next_group(free.min(self.room), part);
        (!jobs.is_empty()).then(|| Ok(self.enter(jobs)))
    }

    fn done(&mut self, number: usize, found: Vec<Found>) -> Result<()> {
        if let Some(Entered { number, client }) = self.entered.remove(&number) {
            client.leave();
            let _ = client.answers.send((number, Outcome::Found(found)));
        }
        Ok(())
    }

    fn is_cancelled(&mut self, number: usize) -> bool {
        let entered = self.entered.get(&number);
        let cancelled = entered.is_none_or(|entered| entered.client.has_given_up());
        if cancelled && let Some(entered) = self.entered.remove(&number) {
            entered.client.leave();
        }
        cancelled
    }
}
