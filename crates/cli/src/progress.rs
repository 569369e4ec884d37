use std::io::{self, IsTerminal};

use attend_data::{Progress, Task};

use crate::{Bar, bar};

/// Shows the phases of reading data: as bars on a terminal, otherwise as a line of the log for each.
pub struct Bars;

impl Progress for Bars {
    fn start(&self, what: &str, total: Option<u64>) -> Box<dyn Task> {
        if !io::stderr().is_terminal() {
            tracing::info!("{what}");
        }
        let bar = bar(total);
        bar.set_message(what);
        Box::new(bar)
    }
}

impl Task for Bar {
    fn advance(&self, amount: u64) {
        Bar::advance(self, amount);
    }
}
