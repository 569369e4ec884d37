/// Watches translations that are in progress, and may cancel them. `()` does neither; a function is told of the
/// lines that are translated.
pub trait Observer: Sync {
    /// So many more lines are translated.
    fn advance(&self, lines: usize) {
        let _ = lines;
    }

    /// Whether to give up, with [`crate::Error::Cancelled`]. Asked before every step of a search.
    fn is_cancelled(&self) -> bool {
        false
    }
}

impl Observer for () {}

impl<F: Fn(usize) + Sync> Observer for F {
    fn advance(&self, lines: usize) {
        self(lines);
    }
}
