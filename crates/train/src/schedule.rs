use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[train.schedule]`: the learning rate as a function of the step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ScheduleConfig {
    /// The shape of the curve after the warm-up.
    pub kind: ScheduleKind,
    /// The peak learning rate, which is reached at the end of the warm-up. For noam, a factor on the
    /// paper's formula: 1.0 is the paper's value.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub learning_rate: f64,
    /// Number of steps over which the learning rate rises linearly from 0.
    pub warmup: u64,
    /// The learning rate at which linear and cosine end, at step `train.steps`. Not for the other kinds.
    #[schemars(range(min = 0))]
    pub minimum: f64,
}

/// The shape of the curve after the warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScheduleKind {
    /// The paper's schedule: d_model^-0.5 · min(step^-0.5, step · warmup^-1.5) (Vaswani et al. 2017, §5.3).
    Noam,
    /// Falls from `learning_rate` with the inverse square root of the step.
    InverseSqrt,
    /// Falls linearly to `minimum` at the last step.
    Linear,
    /// Falls along half a cosine to `minimum` at the last step.
    Cosine,
    /// Stays at `learning_rate`.
    Constant,
}

impl ScheduleKind {
    /// Whether the learning rate depends on `train.steps`.
    pub(crate) fn ends(self) -> bool {
        matches!(self, ScheduleKind::Linear | ScheduleKind::Cosine)
    }
}

impl Default for ScheduleConfig {
    fn default() -> Self {
        Self {
            kind: ScheduleKind::Noam,
            learning_rate: 1.0,
            warmup: 4000,
            minimum: 0.0,
        }
    }
}

impl ScheduleConfig {
    /// The learning rate of `step`, counted from 1, in a run of `steps` steps.
    pub fn rate(&self, step: u64, steps: u64, d_model: usize) -> f64 {
        let (step, steps, warmup) = (step as f64, steps as f64, self.warmup.max(1) as f64);
        if self.kind == ScheduleKind::Noam {
            let shape = step.powf(-0.5).min(step * warmup.powf(-1.5));
            return self.learning_rate * (d_model as f64).powf(-0.5) * shape;
        }
        if step < warmup {
            return self.learning_rate * step / warmup;
        }
        let done = ((step - warmup) / (steps - warmup).max(1.0)).min(1.0);
        let above = self.learning_rate - self.minimum;
        match self.kind {
            ScheduleKind::Noam | ScheduleKind::Constant => self.learning_rate,
            ScheduleKind::InverseSqrt => self.learning_rate * (warmup / step).sqrt(),
            ScheduleKind::Linear => self.minimum + above * (1.0 - done),
            ScheduleKind::Cosine => {
                self.minimum + above * 0.5 * (1.0 + (std::f64::consts::PI * done).cos())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: ScheduleKind, learning_rate: f64, expected: &[(u64, f64)]) {
        let schedule = ScheduleConfig {
            kind,
            learning_rate,
            warmup: 100,
            minimum: 0.0,
        };
        for &(step, rate) in expected {
            let found = schedule.rate(step, 1100, 64);
            assert!(
                (found - rate).abs() < 1e-12,
                "{kind:?} at {step}: {found}, not {rate}"
            );
        }
    }

    #[test]
    fn every_schedule_rises_to_its_peak_and_then_follows_its_curve() {
        // 64^-0.5 = 1/8, and the peak is at 100^-0.5 = 1/10.
        check(
            ScheduleKind::Noam,
            2.0,
            &[(1, 0.00025), (100, 0.025), (400, 0.0125)],
        );
        check(
            ScheduleKind::InverseSqrt,
            0.4,
            &[(50, 0.2), (100, 0.4), (400, 0.2)],
        );
        check(
            ScheduleKind::Linear,
            0.4,
            &[(50, 0.2), (100, 0.4), (600, 0.2), (1100, 0.0), (2000, 0.0)],
        );
        check(
            ScheduleKind::Cosine,
            0.4,
            &[(50, 0.2), (100, 0.4), (600, 0.2), (1100, 0.0)],
        );
        check(
            ScheduleKind::Constant,
            0.4,
            &[(50, 0.2), (100, 0.4), (1000, 0.4)],
        );
    }
}
