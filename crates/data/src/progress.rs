//! Showing how far a long phase has come. Who shows it, and how, is up to the program.

/// Is told of every phase that can take long, such as reading a corpus. `()` shows nothing.
pub trait Progress {
    /// A phase begins. `total` is the number of lines that it processes, if that is known. The phase
    /// ends when the task is dropped.
    fn start(&self, what: &str, total: Option<u64>) -> Box<dyn Task>;
}

/// One phase.
pub trait Task: Send + Sync {
    /// So many more lines are done.
    fn advance(&self, lines: u64);
}

impl Progress for () {
    fn start(&self, _: &str, _: Option<u64>) -> Box<dyn Task> {
        Box::new(())
    }
}

impl Task for () {
    fn advance(&self, _: u64) {}
}
