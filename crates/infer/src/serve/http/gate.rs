use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Fault, Metrics, Options};
use crate::{Error, Observer};

/// Lets only so many requests be translated at once, and so many wait.
pub(super) struct Gate {
    running: Arc<Semaphore>,
    waiting: AtomicUsize,
    max_queue: usize,
    timeout: Duration,
    stopped: Arc<AtomicBool>,
    metrics: Arc<Metrics>,
}

/// Whether anybody still wants the answer.
pub(super) struct Watch {
    gone: AtomicBool,
    stopped: Arc<AtomicBool>,
}

impl Observer for Watch {
    fn is_cancelled(&self) -> bool {
        self.gone.load(Ordering::Relaxed) || self.stopped.load(Ordering::Relaxed)
    }
}

/// Cancels the work when the answer to it is no longer awaited: the client has gone, or it took too long.
struct CancelOnDrop(Arc<Watch>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.gone.store(true, Ordering::Relaxed);
    }
}

/// A turn: until the work has ended, even if nobody waits for it.
struct Turn {
    _permit: OwnedSemaphorePermit,
    metrics: Arc<Metrics>,
}

impl Turn {
    fn new(permit: OwnedSemaphorePermit, metrics: &Arc<Metrics>) -> Self {
        metrics.translating.inc();
        Self {
            _permit: permit,
            metrics: metrics.clone(),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.metrics.translating.dec();
    }
}

/// Counts who waits.
struct Waiting<'a>(&'a Gate);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
        self.0.metrics.waiting.dec();
    }
}

impl Gate {
    /// `stopped` cancels all work.
    pub(super) fn new(options: &Options, stopped: Arc<AtomicBool>, metrics: Arc<Metrics>) -> Self {
        Self {
            running: Arc::new(Semaphore::new(options.max_requests)),
            waiting: AtomicUsize::new(0),
            max_queue: options.max_queue,
            timeout: options.request_timeout,
            stopped,
            metrics,
        }
    }

    /// Does work that blocks, on a thread of its own, when it is its turn.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Watch) -> crate::Result<T> + Send + 'static,
    ) -> Result<T, Fault> {
        let watch = Arc::new(Watch {
            gone: AtomicBool::new(false),
            stopped: self.stopped.clone(),
        });
        let _cancel = CancelOnDrop(watch.clone());
        let work = async {
            let turn = self.enter().await?;
            let work = tokio::task::spawn_blocking(move || {
                let _turn = turn;
                work(&watch)
            });
            match work.await {
                Ok(done) => done.map_err(Fault::from),
                Err(error) => {
                    self.metrics.failed("panic");
                    if let Ok(panic) = error.try_into_panic() {
                        tracing::error!("a request panicked: {}", Error::panicked(&*panic));
                    }
                    Err(Fault::internal())
                }
            }
        };
        match tokio::time::timeout(self.timeout, work).await {
            Ok(done) => done,
            Err(_) => {
                self.metrics.failed("timeout");
                let seconds = self.timeout.as_secs_f32();
                let message = format!("the request took longer than {seconds} s");
                Err(Fault::unavailable(message)
                    .with_hint("ask for less at once, or try again when the server has less to do"))
            }
        }
    }

    async fn enter(&self) -> Result<Turn, Fault> {
        if let Ok(permit) = self.running.clone().try_acquire_owned() {
            return Ok(Turn::new(permit, &self.metrics));
        }
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        self.metrics.waiting.inc();
        let _waiting = Waiting(self);
        if before >= self.max_queue {
            self.metrics.failed("queue");
            return Err(Fault::unavailable("too many requests are waiting")
                .with_hint("try again later")
                .retry_after(2));
        }
        let permit = self.running.clone().acquire_owned().await;
        let permit = permit.map_err(|_| Fault::shutting_down())?;
        Ok(Turn::new(permit, &self.metrics))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn gate(options: &Options) -> Arc<Gate> {
        let stopped = Arc::new(AtomicBool::new(false));
        Arc::new(Gate::new(options, stopped, Arc::new(Metrics::new(&[]))))
    }

    fn run(test: impl Future<Output = ()>) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap().block_on(test);
    }

    #[test]
    fn a_panic_fails_one_request_and_does_not_say_why() {
        run(async {
            let gate = gate(&Options {
                max_requests: 1,
                ..Options::default()
            });
            let fault = gate.run::<()>(|_| panic!("secret")).await.unwrap_err();
            assert_eq!(fault.status.as_u16(), 500);
            assert!(!format!("{fault:?}").contains("secret"));
            assert_eq!(gate.run(|_| Ok(7)).await.unwrap(), 7);
        });
    }

    #[test]
    fn who_finds_the_queue_full_is_refused_and_who_waits_gets_a_turn() {
        run(async {
            let gate = gate(&Options {
                max_requests: 1,
                max_queue: 1,
                ..Options::default()
            });
            let (release, held) = mpsc::channel();
            let spawn = |gate: &Arc<Gate>, work: Box<dyn FnOnce() -> u8 + Send>| {
                let gate = gate.clone();
                tokio::spawn(async move { gate.run(move |_| Ok(work())).await })
            };
            let first = spawn(&gate, Box::new(move || held.recv().unwrap()));
            tokio::task::yield_now().await;
            let second = spawn(&gate, Box::new(|| 2));
            tokio::task::yield_now().await;
            let third = spawn(&gate, Box::new(|| 3)).await.unwrap();
            assert_eq!(third.unwrap_err().status.as_u16(), 503);
            release.send(1).unwrap();
            assert_eq!(first.await.unwrap().unwrap(), 1);
            assert_eq!(second.await.unwrap().unwrap(), 2);
        });
    }

    #[test]
    fn work_that_takes_too_long_is_cancelled() {
        run(async {
            let gate = gate(&Options {
                request_timeout: Duration::from_millis(20),
                ..Options::default()
            });
            let (tell, told) = mpsc::channel();
            let endless = move |watch: &Watch| {
                while !watch.is_cancelled() {
                    std::thread::yield_now();
                }
                let _ = tell.send("cancelled");
                Ok(())
            };
            let fault = gate.run(endless).await.unwrap_err();
            assert_eq!(fault.status.as_u16(), 503);
            assert_eq!(told.recv().unwrap(), "cancelled");
        });
    }
}
