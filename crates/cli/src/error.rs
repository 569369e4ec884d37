use std::io::{self, Write};
use std::process::ExitCode;

use crate::print_line;
use crate::terminal::other_rank;

/// A command line that cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What is wrong, in one line.
    pub message: String,
    /// How to fix it.
    pub hint: String,
}

/// Prints an error and its hint to stderr, on any rank. The exit code is 1.
pub fn report(error: &dyn std::error::Error, hint: Option<String>) -> ExitCode {
    if let Some(rank) = other_rank() {
        let hint = hint.map(|hint| format!("\nrank {rank}: hint: {hint}"));
        let hint = hint.unwrap_or_default();
        // In one piece, since other ranks write to the same terminal; if stderr is closed, nobody is left to tell.
        let text = format!("rank {rank}: error: {error}{hint}\n");
        let _ = io::stderr().write_all(text.as_bytes());
        return ExitCode::FAILURE;
    }
    print_line(&format!("error: {error}"));
    if let Some(hint) = hint {
        print_line(&format!("\nhint: {hint}"));
    }
    ExitCode::FAILURE
}
