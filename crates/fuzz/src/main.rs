//! The targets with libFuzzer, which has the `main` function. `ATTEND_FUZZ` names the target.

#![no_main]

use std::io::{self, Write};
use std::process;
use std::sync::OnceLock;

use attend_fuzz::{Target, keep_panics_silent, outcome};

static TARGET: OnceLock<&'static Target> = OnceLock::new();

libfuzzer_sys::fuzz_target!(
    init: {
        let name = std::env::var("ATTEND_FUZZ").unwrap_or_default();
        let target = Target::named(&name).unwrap_or_else(|| fail(&format!("no target `{name}`")));
        let _ = TARGET.set(target);
        keep_panics_silent(); // libfuzzer-sys's hook aborts even if a panic is caught
    },
    |bytes: &[u8]| {
        if let Some(target) = TARGET.get()
            && let Err(panic) = outcome(target, bytes)
        {
            fail(&panic);
        }
    }
);

/// libFuzzer saves the input of a process that aborts.
fn fail(message: &str) -> ! {
    let _ = writeln!(io::stderr(), "{message}");
    process::abort();
}
