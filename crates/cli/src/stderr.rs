use std::io;

use console::Term;
use indicatif::TermLike;

/// The terminal on stderr. Errors are ignored: when a terminal is closed, a training on it goes on, and indicatif
/// would panic.
#[derive(Debug)]
pub(crate) struct Stderr(Term);

impl Stderr {
    pub(crate) fn new() -> Self {
        Self(Term::buffered_stderr())
    }
}

fn ignore(_: io::Result<()>) -> io::Result<()> {
    Ok(())
}

impl TermLike for Stderr {
    fn width(&self) -> u16 {
        self.0.size().1
    }

    fn height(&self) -> u16 {
        self.0.size().0
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        ignore(self.0.move_cursor_up(n))
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        ignore(self.0.move_cursor_down(n))
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        ignore(self.0.move_cursor_right(n))
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        ignore(self.0.move_cursor_left(n))
    }

    fn write_line(&self, line: &str) -> io::Result<()> {
        ignore(self.0.write_line(line))
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        ignore(self.0.write_str(text))
    }

    fn clear_line(&self) -> io::Result<()> {
        ignore(self.0.clear_line())
    }

    fn flush(&self) -> io::Result<()> {
        ignore(self.0.flush())
    }
}
