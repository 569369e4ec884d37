use attend_data::Position;
use serde::{Deserialize, Serialize};

/// `trainer_state.json`: where a run is, apart from its tensors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainerState {
    /// Updates done, including skipped ones.
    pub step: u64,
    /// The next batch.
    pub position: Position,
    /// Target tokens trained on.
    pub tokens: u64,
    /// Time spent training, over all resumptions.
    pub seconds: f64,
    pub best: Option<Best>,
    /// Validations since the best one.
    pub without_improvement: u64,
    /// Whether a signal interrupted the validation of this step. It is done when the run is resumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub validation_interrupted: bool,
    #[serde(rename = "unlogged")]
    pub log_window: LogWindow,
    pub health: Health,
}

/// Sums since the last `step` line of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LogWindow {
    pub loss: f64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub divergence: f64,
    pub tokens: u64,
    pub seconds: f64,
}

fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

/// The best validation so far.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    pub step: u64,
    /// The metric's value; the loss with a minus sign, so that higher is better.
    pub value: f64,
}

/// What the trainer knows of its last updates, to detect divergence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// Updates that were skipped because the loss or the gradient was not finite.
    pub skipped: u64,
    /// How many of the last updates were skipped in a row.
    pub in_a_row: u64,
    /// Norms of the last gradients, the newest last; `None` where one was not finite.
    pub norms: Vec<Option<f64>>,
    /// Moving average of the loss per token.
    pub average: Option<f64>,
    /// Updates in the average.
    pub seen: u64,
}

impl Default for TrainerState {
    /// Before the first update.
    fn default() -> Self {
        Self {
            step: 0,
            position: Position::START,
            tokens: 0,
            seconds: 0.0,
            best: None,
            without_improvement: 0,
            validation_interrupted: false,
            log_window: LogWindow::default(),
            health: Health::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_was_written() {
        // Written by version 0.1.0.
        let json = r#"{"step":25,"position":{"epoch":1,"index":3},"tokens":900,"seconds":1.5,
            "best":{"step":20,"value":-2.5},"without_improvement":1,
            "unlogged":{"loss":7.25,"tokens":30,"seconds":0.5},
            "health":{"skipped":2,"in_a_row":1,"norms":[0.5,null],"average":2.5,"seen":23}}"#;
        let state: TrainerState = serde_json::from_str(json).unwrap();
        assert_eq!((state.step, state.log_window.tokens), (25, 30));
        assert_eq!(state.health.norms, [Some(0.5), None]);
        let mut written = serde_json::to_value(&state).unwrap();
        // It did not have pools and stages.
        let position = written["position"].as_object_mut().unwrap();
        for key in ["pool", "stage"] {
            assert_eq!(position.remove(key), Some(0.into()));
        }
        assert_eq!(
            written,
            serde_json::from_str::<serde_json::Value>(json).unwrap()
        );
    }
}
