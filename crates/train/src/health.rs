use serde::{Deserialize, Serialize};

/// What training remembers to defend itself: it is saved with a checkpoint, so that a resumed run
/// judges as an unbroken one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// Updates left out, because the loss or the gradient was not finite.
    pub skipped: u64,
    /// How many of them came one after another, up to now.
    pub in_a_row: u64,
    /// Norms of the last gradients, the newest last; `None` where one was not finite.
    pub norms: Vec<Option<f64>>,
    /// Moving average of the loss per token.
    average: Option<f64>,
    /// Updates that the average has seen.
    seen: u64,
}

/// Norms that are remembered.
const NORMS: usize = 12;
/// How much of the average the next loss leaves.
const DECAY: f64 = 0.95;
/// Updates before which a loss cannot stand out: the average still follows each of them.
const YOUNG: u64 = 20;

impl Health {
    /// Takes note of an update's loss per token; gives the average before it if the loss is more than
    /// `spike` times that.
    pub(crate) fn done(&mut self, loss: f64, norm: f64, spike: f64) -> Option<f64> {
        self.remember(Some(norm));
        self.in_a_row = 0;
        let before = self.average.filter(|_| self.seen >= YOUNG);
        self.average = Some(match self.average {
            Some(average) => DECAY * average + (1.0 - DECAY) * loss,
            None => loss,
        });
        self.seen += 1;
        before.filter(|average| loss > spike * average)
    }

    /// Takes note of an update that was left out.
    pub(crate) fn skip(&mut self, norm: f64) {
        self.remember(norm.is_finite().then_some(norm));
        self.in_a_row += 1;
        self.skipped += 1;
    }

    fn remember(&mut self, norm: Option<f64>) {
        if self.norms.len() == NORMS {
            self.norms.remove(0);
        }
        self.norms.push(norm);
    }

    /// The norms, for people.
    pub(crate) fn history(&self) -> String {
        let norms = self.norms.iter().map(|norm| match norm {
            Some(norm) => format!("{norm:.3e}"),
            None => "not finite".to_string(),
        });
        norms.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_far_above_the_average_stands_out_once_there_is_an_average() {
        let mut health = Health::default();
        assert_eq!(health.done(100.0, 1.0, 3.0), None);
        for _ in 0..200 {
            assert_eq!(health.done(2.0, 1.0, 3.0), None);
        }
        let average = health.done(6.5, 1.0, 3.0).unwrap();
        assert!((average - 2.0).abs() < 0.01, "{average}");
    }

    #[test]
    fn what_was_skipped_is_counted_and_survives_being_saved() {
        let mut health = Health::default();
        health.done(2.0, 0.5, 3.0);
        health.skip(f64::NAN);
        health.skip(f64::INFINITY);
        assert_eq!((health.skipped, health.in_a_row), (2, 2));
        let saved = serde_json::to_string(&health).unwrap();
        assert_eq!(serde_json::from_str::<Health>(&saved).unwrap(), health);
        health.done(2.0, 0.7, 3.0);
        assert_eq!((health.skipped, health.in_a_row), (2, 0));
        assert_eq!(
            health.history(),
            "5.000e-1, not finite, not finite, 7.000e-1"
        );
    }
}
