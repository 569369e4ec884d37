//! Subcommands, one per file: arguments and the function that runs them.

pub(crate) mod plot;
pub(crate) mod report;
