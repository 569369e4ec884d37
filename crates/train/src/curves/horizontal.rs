use attend_infer::run::Event;

use super::ticks;

/// What runs along the horizontal axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Horizontal {
    /// Updates.
    #[default]
    Steps,
    /// Time spent training, over all resumptions, without validating and saving.
    Hours,
    /// Target tokens trained on.
    Tokens,
}

impl Horizontal {
    /// The name of the axis.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Steps => "step",
            Self::Hours => "hours of training",
            Self::Tokens => "target tokens",
        }
    }

    /// A place in words: "step 1,200", "1.25 h" or "3,400,000 tokens".
    pub(super) fn describe(self, x: f64) -> String {
        match self {
            Self::Steps => format!("step {}", ticks::grouped(x)),
            Self::Hours => format!("{} h", ticks::precise(x)),
            Self::Tokens => format!("{} tokens", ticks::grouped(x)),
        }
    }

    /// Where the steps of a log lie.
    pub(super) fn ruler(self, events: &[Event]) -> Ruler {
        let (mut marks, mut tokens) = (vec![(0, 0.0)], 0);
        for event in events {
            if let Event::Step(step) = event {
                tokens += step.tokens;
                let place = match self {
                    Self::Steps => step.step as f64,
                    Self::Hours => step.seconds / 3600.0,
                    Self::Tokens => tokens as f64,
                };
                marks.push((step.step, place));
            }
        }
        marks.sort_by_key(|(step, _)| *step);
        let exact = self == Self::Steps;
        Ruler { marks, exact }
    }
}

/// Where steps lie on the axis.
pub(super) struct Ruler {
    /// Steps that were logged, in ascending order.
    marks: Vec<(u64, f64)>,
    /// Whether every step lies at its own number.
    exact: bool,
}

impl Ruler {
    /// The place of a step. One between two that were logged lies between them.
    pub(super) fn place(&self, step: u64) -> f64 {
        if self.exact {
            return step as f64;
        }
        let after = self.marks.partition_point(|(mark, _)| *mark < step);
        let (Some(&(right, end)), Some(&(left, start))) = (
            self.marks.get(after),
            self.marks.get(after.saturating_sub(1)),
        ) else {
            return self.marks.last().map_or(0.0, |(_, place)| *place);
        };
        match right.saturating_sub(left) {
            0 => end,
            steps => start + (end - start) * (step - left) as f64 / steps as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_validation_between_two_lines_lies_between_them() {
        let step = |step: u64, seconds: f64| {
            let line = format!(
                r#"{{"event":"step","step":{step},"epoch":1,"loss":1,"learning_rate":1,"gradient_norm":1,"tokens":500,"tokens_per_second":1,"seconds":{seconds}}}"#
            );
            serde_json::from_str::<Event>(&line).unwrap()
        };
        let events = [step(10, 3600.0), step(20, 10_800.0)];
        let hours = Horizontal::Hours.ruler(&events);
        let places = [0, 5, 10, 15, 20, 99].map(|step| hours.place(step));
        assert_eq!(places, [0.0, 0.5, 1.0, 2.0, 3.0, 3.0]);
        let tokens = Horizontal::Tokens.ruler(&events);
        assert_eq!([10, 20].map(|step| tokens.place(step)), [500.0, 1000.0]);
        assert_eq!(Horizontal::Steps.ruler(&events).place(99), 99.0);
    }
}
