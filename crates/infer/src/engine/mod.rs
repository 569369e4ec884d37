//! One model that translates for many who ask at once.
//!
//! A thread of its own runs the search. Whoever asks hands over sentences, each with its search, and waits. Sentences
//! of all who ask are in one batch: they enter it between two steps, and leave it when they are done, so a sentence
//! waits for no other to end. What is found does not depend on what else is in the batch.
//!
//! If a batch fails, its sentences are searched again, each alone. So a sentence fails only by itself.
//!
//! | file | contents |
//! |---|---|
//! | `queue` | what waits, in a fair order |
//! | `feed` | gives what waits to the search |

mod feed;
mod queue;
#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use attend_model::{Kernels, Pass, Step};
use attend_ops::on_pool;

use crate::search::{Found, Search, search};
use crate::{Error, Models, Observer, Result};
use feed::Live;
use queue::{Job, Queue, Ticket};

/// Searches for all who ask. Dropping it ends its thread, after what it has to do.
pub struct Engine {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

/// A sentence to search a translation for.
pub(crate) struct Sentence {
    /// Which of the asked ones it is.
    pub(crate) number: usize,
    pub(crate) tokens: Vec<u32>,
    pub(crate) search: Search,
}

/// What became of a sentence.
enum Outcome {
    Found(Vec<Found>),
    /// The batch that it was in failed. It may be the fault of another.
    Again,
    Failed(Error),
}

type Answers = Sender<(usize, Outcome)>;

/// How often a waiting thread looks whether it is to give up.
const LOOK: Duration = Duration::from_millis(50);

impl Engine {
    pub fn start(models: Arc<Models>, kernels: Kernels) -> Self {
        let room = models.decode.batch_tokens;
        Self::run(room, kernels, move |work| work(&models.ensemble))
    }

    /// Starts a thread that works with the model that `with` lends it.
    fn run(
        room: usize,
        kernels: Kernels,
        with: impl FnOnce(&dyn Fn(&dyn Step)) + Send + 'static,
    ) -> Self {
        let queue = Arc::new(Queue::default());
        let own = queue.clone();
        let thread = std::thread::spawn(move || with(&|model| work(model, &own, room, kernels)));
        Self {
            queue,
            thread: Some(thread),
        }
    }

    /// Searches translations for sentences, and gives `done` what is found for each as soon as it is. `again` makes
    /// a sentence once more. The observer may cancel all of them.
    pub(crate) fn search(
        &self,
        sentences: Vec<Sentence>,
        again: impl Fn(usize) -> Result<Sentence>,
        observer: &dyn Observer,
        mut done: impl FnMut(usize, Vec<Found>) -> Result<()>,
    ) -> Result<()> {
        let (answers, outcomes) = channel();
        let ticket = Ticket::default();
        let mut waiting = sentences.len();
        let jobs = sentences.into_iter();
        let jobs = jobs.map(|sentence| Job::new(sentence, answers.clone(), &ticket));
        self.queue.push(jobs.collect());
        while waiting > 0 {
            let (number, outcome) = match outcomes.recv_timeout(LOOK) {
                Ok(outcome) => outcome,
                Err(RecvTimeoutError::Timeout) if observer.is_cancelled() => {
                    return Err(Error::Cancelled);
                }
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return Err(Error::Stopped),
            };
            match outcome {
                Outcome::Found(found) => {
                    waiting -= 1;
                    done(number, found)?;
                }
                Outcome::Again => {
                    let job = Job::new(again(number)?, answers.clone(), &ticket);
                    self.queue.push_alone(job);
                }
                Outcome::Failed(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Runs something else that computes with the model, between two steps of the search. It is an error if it panics.
    pub fn call<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let (answer, result) = channel();
        self.queue.push_call(Box::new(move || {
            // Nobody may wait any more.
            let _ = answer.send(catch_unwind(AssertUnwindSafe(work)));
        }));
        let result = result.recv().map_err(|_| Error::Stopped)?;
        result.map_err(|panic| Error::panicked(&*panic))
    }

    /// Sentences that wait to enter the batch.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a panic was reported where it happened
        }
    }
}

/// Searches until the queue is closed.
fn work(model: &dyn Step, queue: &Queue, room: usize, kernels: Kernels) {
    let pass = Pass::eval(kernels);
    while queue.wait() {
        let mut feed = Live::new(queue, room);
        let searched = catch_unwind(AssertUnwindSafe(|| {
            on_pool(|| search(model, &mut feed, room, &pass))
        }));
        match searched {
            Ok(Ok(())) => {}
            Ok(Err(error)) => feed.fail(error),
            Err(panic) => feed.fail(Error::panicked(&*panic)),
        }
    }
}
