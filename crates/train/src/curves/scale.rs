use super::points::range;
use super::quantity::Quantity;
use super::ticks::{self, Tick};

/// From values to their places along an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Scale {
    /// Exactly from the one value to the other.
    pub(super) fn exact(low: f64, high: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self {
            low,
            high,
            logarithmic: false,
        }
    }

    /// A scale for these values of a quantity, with some room on both sides. It is logarithmic where the values
    /// would else be squeezed together at the bottom.
    pub(super) fn of(quantity: Quantity, values: &[f64]) -> Self {
        let (low, high) = range(values);
        if is_logarithmic(quantity, values) {
            let room = (high / low).powf(0.05);
            return Self {
                low: low / room,
                high: high * room,
                logarithmic: true,
            };
        }
        let room = match high - low {
            0.0 => (0.05 * low.abs()).max(1e-9),
            distance => 0.06 * distance,
        };
        // Nothing that is drawn can be below 0.
        let bottom = if low >= 0.0 {
            0.0_f64
        } else {
            f64::NEG_INFINITY
        };
        Self {
            low: (low - room).max(bottom),
            high: high + room,
            logarithmic: false,
        }
    }

    /// Where a value lies: 0 at the lower end, 1 at the upper one.
    pub(super) fn place(&self, value: f64) -> f64 {
        if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }

    pub(super) fn ticks(&self) -> Vec<Tick> {
        if self.logarithmic {
            ticks::logarithmic(self.low, self.high)
        } else {
            ticks::linear(self.low, self.high)
        }
    }

    pub(super) fn is_logarithmic(&self) -> bool {
        self.logarithmic
    }
}

fn is_logarithmic(quantity: Quantity, values: &[f64]) -> bool {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(&lowest) = sorted.first().filter(|lowest| **lowest > 0.0) else {
        return false;
    };
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share) as usize];
    match quantity {
        // Not because of a short warmup alone.
        Quantity::LearningRate => at(0.9) > 20.0 * at(0.1),
        // A few spikes hide everything else.
        Quantity::GradientNorm => at(1.0) > 10.0 * at(0.5) && at(1.0) > 20.0 * lowest,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_within_the_scale_in_their_order() {
        for values in [
            &[2.0, 3.5, 9.0][..],
            &[0.0, 0.0],
            &[5.0],
            &[1e-9, 1e9],
            &[-4.0, -1.0],
        ] {
            for quantity in Quantity::ALL {
                let scale = Scale::of(quantity, values);
                let places: Vec<f64> = values.iter().map(|value| scale.place(*value)).collect();
                assert!(places.iter().all(|x| (0.0..=1.0).contains(x)), "{places:?}");
                assert!(places.is_sorted(), "{places:?}");
            }
        }
    }

    #[test]
    fn a_rate_that_decays_over_decades_is_logarithmic_and_a_short_warmup_is_not() {
        let decay: Vec<f64> = (0..100).map(|i| 1e-3 * 0.93_f64.powi(i)).collect();
        assert!(Scale::of(Quantity::LearningRate, &decay).is_logarithmic());
        let mut warmup = vec![1e-3; 100];
        warmup[..5].copy_from_slice(&[1e-7, 1e-6, 1e-5, 1e-4, 5e-4]);
        assert!(!Scale::of(Quantity::LearningRate, &warmup).is_logarithmic());
        let zero = Scale::of(Quantity::LearningRate, &[0.0, 1e-3, 1.0]);
        assert!(!zero.is_logarithmic(), "0 has no logarithm");
    }

    #[test]
    fn one_spike_does_not_hide_the_gradients_norm() {
        let mut norms = vec![1.5; 50];
        norms[20] = 400.0;
        norms[21] = 0.5;
        let scale = Scale::of(Quantity::GradientNorm, &norms);
        assert!(scale.is_logarithmic());
        assert!(scale.place(1.5) > 0.1);
    }
}
