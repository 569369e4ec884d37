//! Detects non-finite updates and spikes of the loss. Its state is part of the checkpoint, so that a resumed run
//! decides as an uninterrupted one does.

use attend_infer::run::Health;

/// How many gradient norms are kept.
const NORMS: usize = 12;
/// Decay of the moving average of the loss.
const DECAY: f64 = 0.95;
/// Updates before losses are compared with the average.
const WARMUP: u64 = 20;

/// Records an update with its loss per token. Returns the average of the losses before it if this one
/// is more than `spike` times as high.
pub(crate) fn record_update(health: &mut Health, loss: f64, norm: f64, spike: f64) -> Option<f64> {
    record_norm(health, Some(norm));
    health.in_a_row = 0;
    let before = health.average.filter(|_| health.seen >= WARMUP);
    health.average = Some(match health.average {
        Some(average) => DECAY * average + (1.0 - DECAY) * loss,
        None => loss,
    });
    health.seen += 1;
    before.filter(|average| loss > spike * average)
}

/// Records an update that was skipped.
pub(crate) fn record_skip(health: &mut Health, norm: f64) {
    record_norm(health, norm.is_finite().then_some(norm));
    health.in_a_row += 1;
    health.skipped += 1;
}

fn record_norm(health: &mut Health, norm: Option<f64>) {
    if health.norms.len() == NORMS {
        health.norms.remove(0);
    }
    health.norms.push(norm);
}

/// The last norms, for an error message.
pub(crate) fn norm_history(health: &Health) -> String {
    let norms = health.norms.iter().map(|norm| match norm {
        Some(norm) => format!("{norm:.3e}"),
        None => "not finite".to_string(),
    });
    norms.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_far_above_the_average_is_a_spike_once_the_average_is_steady() {
        let mut health = Health::default();
        assert_eq!(record_update(&mut health, 100.0, 1.0, 3.0), None);
        for _ in 0..200 {
            assert_eq!(record_update(&mut health, 2.0, 1.0, 3.0), None);
        }
        let average = record_update(&mut health, 6.5, 1.0, 3.0).unwrap();
        assert!((average - 2.0).abs() < 0.01, "{average}");
    }

    #[test]
    fn skipped_updates_are_counted_and_saved() {
        let mut health = Health::default();
        record_update(&mut health, 2.0, 0.5, 3.0);
        record_skip(&mut health, f64::NAN);
        record_skip(&mut health, f64::INFINITY);
        assert_eq!((health.skipped, health.in_a_row), (2, 2));
        let saved = serde_json::to_string(&health).unwrap();
        assert_eq!(serde_json::from_str::<Health>(&saved).unwrap(), health);
        record_update(&mut health, 2.0, 0.7, 3.0);
        assert_eq!((health.skipped, health.in_a_row), (2, 0));
        assert_eq!(
            norm_history(&health),
            "5.000e-1, not finite, not finite, 7.000e-1"
        );
    }
}
