use std::io::Write;
use std::process::ExitCode;

/// A command line that cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What is wrong, in one line.
    pub message: String,
    /// How to fix it.
    pub hint: String,
}

/// Prints an error and its hint to stderr. The exit code is 1.
pub fn report(error: &dyn std::error::Error, hint: Option<String>) -> ExitCode {
    let mut stderr = std::io::stderr().lock();
    let hint = hint.map_or_else(String::new, |hint| format!("\nhint: {hint}\n"));
    // If stderr is closed, there is nowhere left to report it.
    let _ = write!(stderr, "error: {error}\n{hint}");
    ExitCode::FAILURE
}
