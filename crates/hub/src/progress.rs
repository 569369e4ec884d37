/// Shows transfers. `()` shows nothing.
pub trait Progress {
    /// A file is about to be transferred.
    fn start(&self, name: &str, bytes: u64) -> Box<dyn Transfer>;
}

/// One file on its way. It is dropped when the file has arrived, or failed.
pub trait Transfer {
    /// So many more bytes have arrived.
    fn advance(&self, bytes: u64);
}

impl Progress for () {
    fn start(&self, _name: &str, _bytes: u64) -> Box<dyn Transfer> {
        Box::new(())
    }
}

impl Transfer for () {
    fn advance(&self, _bytes: u64) {}
}
