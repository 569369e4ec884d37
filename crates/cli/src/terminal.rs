//! What people see on stderr: progress bars if it is a terminal, and lines that do not disturb them.

use std::io::{self, IsTerminal, Write};
use std::sync::{LazyLock, OnceLock};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::stderr::Stderr;

/// All bars. They are drawn on stderr, and only if it is a terminal.
static BARS: LazyLock<MultiProgress> = LazyLock::new(|| {
    MultiProgress::with_draw_target(if io::stderr().is_terminal() {
        ProgressDrawTarget::term_like_with_hz(Box::new(Stderr::new()), DRAWS_PER_SECOND)
    } else {
        ProgressDrawTarget::hidden()
    })
});

const DRAWS_PER_SECOND: u8 = 20;

/// The message is cut to the width of the terminal: a line that wraps cannot be erased.
const COUNTED: &str = "{bar:8} {human_pos}/{human_len} {rate}/s {eta} left {wide_msg}";
const UNCOUNTED: &str = "{spinner} {elapsed} {human_pos} {wide_msg}";

/// Adds a bar. Without a total, it shows the time and the count instead. The bar goes away when it is dropped.
pub fn bar(total: Option<u64>) -> Bar {
    let (bar, template) = match total {
        Some(total) => (ProgressBar::new(total), COUNTED),
        None => (ProgressBar::new_spinner(), UNCOUNTED),
    };
    let style = ProgressStyle::with_template(template).expect("the templates are constants");
    bar.set_style(style.with_key("rate", write_rate));
    let bar = BARS.add(bar);
    bar.enable_steady_tick(Duration::from_millis(500));
    Bar(bar)
}

fn write_rate(state: &ProgressState, text: &mut dyn std::fmt::Write) {
    // Writing to a string cannot fail.
    let _ = match state.per_sec() {
        rate if rate < 100.0 => write!(text, "{rate:.1}"),
        rate => write!(text, "{rate:.0}"),
    };
}

/// A progress bar on the terminal.
pub struct Bar(ProgressBar);

impl Bar {
    pub fn set_message(&self, message: impl Into<String>) {
        self.0.set_message(message.into());
    }

    pub fn set_position(&self, position: u64) {
        self.0.set_position(position);
    }

    pub fn advance(&self, amount: u64) {
        self.0.inc(amount);
    }

    /// Starts at a position that was reached before: the time left is estimated from here on.
    pub fn start_at(&self, position: u64) {
        self.0.set_position(position);
        self.0.reset_eta();
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
        BARS.remove(&self.0);
    }
}

/// The number of this process among those that compute together.
static RANK: OnceLock<usize> = OnceLock::new();

/// Says that this is one of several processes that compute together. Only the first one prints; the others print their
/// errors, with their number.
pub fn set_rank(rank: usize) {
    let _ = RANK.set(rank); // a second call changes nothing
    if rank > 0 {
        BARS.set_draw_target(ProgressDrawTarget::hidden());
    }
}

/// The number of this process, if it is not the first of those that compute together.
pub(crate) fn other_rank() -> Option<usize> {
    RANK.get().copied().filter(|&rank| rank > 0)
}

/// Prints a line to stderr, above the bars.
pub fn print_line(line: &str) {
    // In one piece, or a bar would be drawn before the end of the line. If stderr is closed, there is nobody
    // left to tell.
    let _ = LineWriter.write_all(format!("{line}\n").as_bytes());
}

/// Writes to stderr, above the bars.
pub(crate) struct LineWriter;

impl Write for LineWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if other_rank().is_some() {
            return Ok(bytes.len());
        }
        BARS.suspend(|| io::stderr().write_all(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
