use std::io::{IsTerminal, stderr, stdout};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use attend_cli::{Bar, bar};
use attend_infer::Observer;

use crate::commands::line_file::LineFile;

/// A bar of lines, while a translator tells of requests: a line can have any number of these.
pub(super) struct LineBar {
    bar: Option<Bar>,
    /// Lines of this chunk that are not shown as translated.
    left: AtomicUsize,
}

impl LineBar {
    /// A bar on the terminal, unless the translations are printed there.
    pub(super) fn new(files: &[PathBuf], has_output: bool) -> Self {
        let seen = stderr().is_terminal() && (has_output || !stdout().is_terminal());
        Self {
            bar: (seen && !files.is_empty()).then(|| bar(count_lines(files))),
            left: AtomicUsize::new(0),
        }
    }

    /// A chunk of so many lines begins.
    pub(super) fn begin(&self, lines: usize) {
        self.left.store(lines, Ordering::Relaxed);
    }

    /// The chunk ends.
    pub(super) fn end(&self) {
        self.advance(usize::MAX);
    }
}

impl Observer for LineBar {
    fn advance(&self, requests: usize) {
        let Some(bar) = &self.bar else {
            return;
        };
        let take = |left: usize| Some(left.saturating_sub(requests));
        let order = Ordering::Relaxed;
        if let Ok(left) = self.left.fetch_update(order, order, take) {
            bar.advance(left.min(requests) as u64);
        }
    }
}

/// The number of lines, if all input is files. A file that cannot be read counts as far as it can: the
/// error is reported when it is translated.
fn count_lines(files: &[PathBuf]) -> Option<u64> {
    let count = |path: &Path| {
        let file = LineFile::new(path);
        let lines = file.path.is_file().then(|| file.open().ok()).flatten()?;
        Some(lines.map_while(|line| line.ok()).count() as u64)
    };
    files.iter().map(|path| count(path)).sum()
}
