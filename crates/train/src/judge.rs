use attend_infer::run::{Best, TrainerState, Validation};

use crate::config::{Metric, TrainConfig};
use crate::validate::Validator;

/// Decides which checkpoint is the best, and when to stop early. What it has decided is part of the
/// [`TrainerState`], which a checkpoint holds.
pub(crate) struct Judge {
    metric: Metric,
    patience: Option<u64>,
    validator: Option<Validator>,
    /// What the last best validation replaced.
    replaced: Option<Record>,
}

/// The best validation, and how many came after it.
#[derive(Clone, Copy)]
struct Record {
    best: Option<Best>,
    without_improvement: u64,
}

impl Judge {
    /// Without a validator, nothing is ever the best.
    pub(crate) fn new(config: &TrainConfig, validator: Option<Validator>) -> Self {
        Self {
            metric: config.metric,
            patience: config.patience,
            validator,
            replaced: None,
        }
    }

    pub(crate) fn validator(&self) -> Option<&Validator> {
        self.validator.as_ref()
    }

    /// Records a validation. Returns whether it is the best so far.
    pub(crate) fn record(&mut self, validation: &Validation, state: &mut TrainerState) -> bool {
        let value = self.metric.value(validation);
        let better = value.is_finite() && state.best.is_none_or(|best| value > best.value);
        if better {
            self.replaced = Some(Record {
                best: state.best,
                without_improvement: state.without_improvement,
            });
            state.best = Some(Best {
                step: validation.step,
                value,
            });
            state.without_improvement = 0;
        } else {
            state.without_improvement += 1;
        }
        better
    }

    /// Whether validation has not improved for as long as `train.patience` allows.
    pub(crate) fn is_out_of_patience(&self, state: &TrainerState) -> bool {
        self.patience
            .is_some_and(|patience| state.without_improvement >= patience)
    }

    /// To be called before the parameters change. If the current ones are the best but could not be
    /// saved, they are about to be lost: the best before them counts again. `saved` is the step of the
    /// last checkpoint.
    pub(crate) fn retract_unsaved(&mut self, state: &mut TrainerState, saved: Option<u64>) {
        let replaced = self.replaced.take();
        let unsaved = |best: Best| best.step == state.step && saved != Some(best.step);
        if let Some(record) = replaced.filter(|_| state.best.is_some_and(unsaved)) {
            state.best = record.best;
            state.without_improvement = record.without_improvement + 1;
        }
    }

    /// The keys of the config that decide the metric's value for given parameters.
    pub(crate) fn keys(metric: Metric) -> &'static [&'static str] {
        match metric {
            Metric::Loss => &["train.metric"],
            Metric::Bleu | Metric::Chrf => &["train.metric", "train.translate_sentences", "decode"],
        }
    }

    /// To be called when the validations to come cannot be compared with those so far.
    pub(crate) fn forget(state: &mut TrainerState) {
        if state.best.is_some() {
            tracing::warn!(
                "validations cannot be compared with those before: forgetting the best so far"
            );
        }
        state.best = None;
        state.without_improvement = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(metric: Metric) -> Judge {
        let config = TrainConfig {
            metric,
            patience: Some(2),
            ..TrainConfig::default()
        };
        Judge::new(&config, None)
    }

    /// A validation at `step`. A lower loss comes with a lower BLEU.
    fn validation(step: u64, loss: f64) -> Validation {
        Validation {
            step,
            loss,
            perplexity: loss.exp(),
            accuracy: 0.5,
            bleu: Some(10.0 * loss),
            chrf: None,
            best: false,
            samples: Vec::new(),
        }
    }

    fn standing(state: &TrainerState) -> (Option<u64>, u64) {
        (state.best.map(|best| best.step), state.without_improvement)
    }

    #[test]
    fn the_metric_decides_which_validation_is_the_best() {
        for (metric, best) in [(Metric::Loss, 20), (Metric::Bleu, 30)] {
            let (mut judge, mut state) = (judge(metric), TrainerState::default());
            for (step, loss) in [(10, 2.0), (20, 1.0), (30, 3.0)] {
                judge.record(&validation(step, loss), &mut state);
            }
            assert_eq!(standing(&state).0, Some(best), "{metric:?}");
        }
    }

    #[test]
    fn patience_ends_after_as_many_validations_without_improvement() {
        let (mut judge, mut state) = (judge(Metric::Loss), TrainerState::default());
        assert!(judge.record(&validation(10, 2.0), &mut state));
        assert!(!judge.record(&validation(20, 2.0), &mut state));
        assert!(!judge.is_out_of_patience(&state));
        assert!(!judge.record(&validation(30, f64::NAN), &mut state));
        assert!(judge.is_out_of_patience(&state));
        assert!(judge.record(&validation(40, 1.0), &mut state));
        assert!(!judge.is_out_of_patience(&state));
    }

    #[test]
    fn a_best_that_could_not_be_saved_is_retracted_before_the_next_update() {
        let (mut judge, mut state) = (judge(Metric::Loss), TrainerState::default());
        judge.record(&validation(10, 3.0), &mut state);
        state.step = 10;
        judge.retract_unsaved(&mut state, Some(10));
        assert_eq!(standing(&state), (Some(10), 0), "it was saved");

        judge.record(&validation(20, 4.0), &mut state);
        judge.record(&validation(30, 2.0), &mut state);
        state.step = 30;
        judge.retract_unsaved(&mut state, Some(20));
        assert_eq!(standing(&state), (Some(10), 2), "it was not");
        judge.retract_unsaved(&mut state, Some(20));
        assert_eq!(standing(&state), (Some(10), 2), "it is retracted once");
    }
}
