use std::process::ExitCode;

use crate::print_line;

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
    print_line(&format!("error: {error}"));
    if let Some(hint) = hint {
        print_line(&format!("\nhint: {hint}"));
    }
    ExitCode::FAILURE
}
