use std::cell::RefCell;
use std::panic;

use crate::Target;

thread_local! {
    /// The message and the place of this thread's last panic.
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs a target. An error says how it panicked.
pub fn outcome(target: &Target, bytes: &[u8]) -> Result<(), String> {
    panic::catch_unwind(|| (target.run)(bytes)).map_err(|payload| {
        let mut panic = LAST.take();
        if let (true, Some(message)) = (panic.is_empty(), payload.downcast_ref::<String>()) {
            panic.clone_from(message); // of another thread
        }
        format!("{}: {panic}\ninput: {}", target.name, bytes.escape_ascii())
    })
}

/// Replaces the panic hook by one that prints nothing, and does not abort. The code under test catches panics
/// of the `tokenizers` crate and makes errors of them, so only a panic that escapes a target is a failure.
pub fn keep_panics_silent() {
    panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        LAST.with(|last| last.replace(text));
    }));
}
