use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::terminal::LineWriter;

/// The clients of the Hugging Face Hub log what the program reports itself, in its own words.
const SILENT: &str = "hf_hub=off,xet=off";

/// Sends log messages of `level` (such as "info") and above to stderr. `RUST_LOG` overrides the level.
pub fn start_log(level: &str) {
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new(format!("{level},{SILENT}")));
    // A second call, as in a test, changes nothing.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| LineWriter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .log_internal_errors(false) // a closed terminal is no reason to stop
        .without_time()
        .try_init();
}
