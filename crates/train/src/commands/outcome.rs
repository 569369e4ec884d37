use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

/// Prints a report. The exit status is 0 only if its result is good.
pub(super) fn print_result(found: &impl Display, good: bool) -> anyhow::Result<ExitCode> {
    writeln!(io::stdout(), "{found}")?;
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
