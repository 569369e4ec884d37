use attend_infer::run::Event;

use super::ticks;

/// What a panel shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    TrainingLoss,
    ValidationLoss,
    Bleu,
    Chrf,
    LearningRate,
    GradientNorm,
    Speed,
}

impl Quantity {
    /// In the order of the panels.
    pub(super) const ALL: [Self; 7] = [
        Self::TrainingLoss,
        Self::ValidationLoss,
        Self::Bleu,
        Self::Chrf,
        Self::LearningRate,
        Self::GradientNorm,
        Self::Speed,
    ];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::TrainingLoss => "Training loss",
            Self::ValidationLoss => "Validation loss",
            Self::Bleu => "Validation BLEU",
            Self::Chrf => "Validation chrF2",
            Self::LearningRate => "Learning rate",
            Self::GradientNorm => "Gradient norm",
            Self::Speed => "Speed",
        }
    }

    /// What the numbers are, for the title.
    pub(super) fn unit(self) -> &'static str {
        match self {
            Self::TrainingLoss | Self::ValidationLoss => "nats per token",
            Self::Bleu | Self::Chrf => "0 to 100",
            Self::LearningRate => "",
            Self::GradientNorm => "before clipping",
            Self::Speed => "target tokens/s",
        }
    }

    /// Whether it is measured at validations, one of which is the best.
    pub(super) fn is_validated(self) -> bool {
        matches!(self, Self::ValidationLoss | Self::Bleu | Self::Chrf)
    }

    /// Whether its numbers vary by chance from one line to the next.
    pub(super) fn is_noisy(self) -> bool {
        matches!(self, Self::TrainingLoss | Self::GradientNorm | Self::Speed)
    }

    /// A value in digits.
    pub(super) fn describe(self, value: f64) -> String {
        match self {
            Self::TrainingLoss | Self::ValidationLoss => format!("{value:.4}"),
            Self::Bleu | Self::Chrf => format!("{value:.2}"),
            Self::LearningRate => ticks::precise(value),
            Self::GradientNorm => format!("{value:.3}"),
            Self::Speed => ticks::grouped(value),
        }
    }

    /// Its value in an event.
    pub(super) fn of(self, event: &Event) -> Option<f64> {
        match (self, event) {
            (Self::TrainingLoss, Event::Step(step)) => Some(step.loss),
            (Self::LearningRate, Event::Step(step)) => Some(step.learning_rate),
            (Self::GradientNorm, Event::Step(step)) => Some(step.gradient_norm),
            (Self::Speed, Event::Step(step)) => Some(step.tokens_per_second),
            (Self::ValidationLoss, Event::Validation(validation)) => Some(validation.loss),
            (Self::Bleu, Event::Validation(validation)) => validation.bleu,
            (Self::Chrf, Event::Validation(validation)) => validation.chrf,
            _ => None,
        }
    }
}
