/// Watches translations that are in progress, and may cancel them. `()` does neither.
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
