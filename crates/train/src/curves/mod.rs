//! The curves of runs: what `metrics.jsonl` says, drawn.
//!
//! | file | contents |
//! |---|---|
//! | `quantity` | what is drawn: a loss, a score, a rate |
//! | `history` | the numbers of one run |
//! | `horizontal` | steps, hours or tokens |
//! | `names` | distinct names of runs |
//! | `points` | many points thinned, noisy ones smoothed |
//! | `ticks` | round numbers along an axis, and how numbers are written |
//! | `scale` | from a value to its place |
//! | `style` | colours and sizes |
//! | `panel` | one quantity of all runs, as SVG |
//! | `document` | all panels as one SVG |
//! | `page` | all panels as HTML, with values under the pointer |
//! | `output` | the file that they are written to |

mod document;
mod history;
mod horizontal;
mod names;
mod output;
mod page;
mod panel;
mod points;
mod quantity;
mod scale;
mod style;
mod ticks;

use std::path::PathBuf;

use crate::Result;
use history::History;
pub use horizontal::Horizontal;
pub use output::Picture;
pub(crate) use output::{check_output, write_output};
pub(crate) use page::{SCRIPT, STYLE, colours};
use panel::Panel;
use quantity::Quantity;
pub(crate) use ticks::grouped;

/// The curves of one or more runs.
#[derive(Debug)]
pub struct Curves {
    runs: Vec<History>,
    horizontal: Horizontal,
}

impl Curves {
    /// Reads the logs of runs, which may be training right now. A run without any number is an error.
    pub fn read(folders: &[PathBuf], horizontal: Horizontal) -> Result<Self> {
        let names = names::distinct(folders);
        let runs = folders.iter().zip(names);
        let runs = runs.map(|(folder, name)| History::read(folder, name, horizontal));
        Ok(Self {
            runs: runs.collect::<Result<_>>()?,
            horizontal,
        })
    }

    /// All panels as one SVG document without external resources.
    pub fn to_svg(&self) -> String {
        document::write(self)
    }

    /// One page without external resources, which shows values under the pointer.
    pub fn to_html(&self) -> String {
        page::write(self)
    }

    /// A panel for each quantity that a run has.
    fn panels(&self) -> Vec<Panel<'_>> {
        let panels = Quantity::ALL.map(|quantity| Panel::new(self, quantity));
        panels.into_iter().flatten().collect()
    }

    /// From the smallest to the greatest place of any point.
    fn span(&self) -> (f64, f64) {
        let places = self.runs.iter().flat_map(History::places);
        places.fold((0.0, 0.0), |(low, high), x| (low.min(x), high.max(x)))
    }
}
