use std::path::Path;

use attend_infer::run::{Event, RunFolder};

use super::horizontal::Horizontal;
use super::points::Point;
use super::quantity::Quantity;
use crate::{Error, Result};

/// The numbers of one run.
#[derive(Debug)]
pub(super) struct History {
    pub(super) name: String,
    /// The points of every quantity, in the order of [`Quantity::ALL`].
    points: [Vec<Point>; Quantity::ALL.len()],
    /// Where the best validation is.
    pub(super) best: Option<f64>,
}

impl History {
    pub(super) fn read(folder: &Path, name: String, horizontal: Horizontal) -> Result<Self> {
        let log = match folder.is_dir() {
            true => RunFolder::new(folder).event_log()?,
            false => None,
        };
        let shown = folder.display();
        let Some(log) = log else {
            let message = format!("{shown} is not the folder of a run: it has no metrics.jsonl");
            let hint = "give the folder that `out` of a config names; `train ls` lists runs";
            return Err(Error::usage(message, hint));
        };
        let events: Vec<Event> = log.events().collect();
        let history = Self::new(&events, name, horizontal);
        if history.points.iter().all(Vec::is_empty) {
            let message = format!("{shown} has no numbers yet: its metrics.jsonl has no step");
            let hint =
                "wait for the first line; train.log_every says after how many steps it comes";
            return Err(Error::usage(message, hint));
        }
        Ok(history)
    }

    fn new(events: &[Event], name: String, horizontal: Horizontal) -> Self {
        let ruler = horizontal.ruler(events);
        let points = Quantity::ALL.map(|quantity| {
            let points = events.iter().filter_map(|event| {
                let y = quantity.of(event).filter(|value| value.is_finite())?;
                let x = ruler.place(step_of(event));
                Some(Point { x, y })
            });
            points.collect()
        });
        let best = events.iter().rev().find_map(|event| match event {
            Event::Validation(validation) if validation.best => Some(validation.step),
            _ => None,
        });
        Self {
            name,
            points,
            best: best.map(|step| ruler.place(step)),
        }
    }

    pub(super) fn points(&self, quantity: Quantity) -> &[Point] {
        let index = Quantity::ALL.iter().position(|other| *other == quantity);
        index.map_or(&[], |index| &self.points[index])
    }

    /// The places of all points.
    pub(super) fn places(&self) -> impl Iterator<Item = f64> + '_ {
        self.points.iter().flatten().map(|point| point.x)
    }
}

fn step_of(event: &Event) -> u64 {
    match event {
        Event::Step(step) => step.step,
        Event::Validation(validation) => validation.step,
        Event::Skipped(skipped) => skipped.step,
        Event::Spike(spike) => spike.step,
        Event::Test(scores) => scores.step,
    }
}
