use candle_core::{Result, Tensor, bail};

use crate::attention::{Attended, Choice};

/// The output of one decoder step, or of several with their rows concatenated.
pub(crate) struct StepOutput {
    /// The new state of the highest layer; in Luong's order, that state combined with the context.
    pub(super) top: Tensor,
    pub(super) attended: Option<Attended>,
    /// The encoder's summary, if every step sees it.
    pub(super) summary: Option<Tensor>,
}

impl StepOutput {
    pub(super) fn attended(top: Tensor, attended: Attended) -> Self {
        Self {
            top,
            attended: Some(attended),
            summary: None,
        }
    }

    /// Concatenates the rows of all steps.
    pub(super) fn join(steps: &[Self]) -> Result<Self> {
        let cat = |part: &dyn Fn(&Self) -> Option<Tensor>| -> Result<Option<Tensor>> {
            let parts: Option<Vec<Tensor>> = steps.iter().map(part).collect();
            let parts = parts.filter(|parts| !parts.is_empty());
            parts.map(|parts| Tensor::cat(&parts, 0)).transpose()
        };
        let of = |part: fn(&Attended) -> Tensor| {
            cat(&move |step: &Self| step.attended.as_ref().map(part))
        };
        let top = cat(&|step| Some(step.top.clone()))?;
        let (context, weights) = (of(|a| a.context.clone())?, of(|a| a.weights.clone())?);
        let choices = steps
            .iter()
            .map(|step| step.attended.as_ref()?.choice.clone())
            .collect::<Option<Vec<_>>>()
            .filter(|choices| !choices.is_empty());
        let choice = choices.map(|all| Choice::join(&all)).transpose()?;
        let attended = context.zip(weights).map(|(context, weights)| Attended {
            context,
            weights,
            choice,
        });
        let Some(top) = top else {
            bail!("the target batch has no tokens")
        };
        let summary = cat(&|step| step.summary.clone())?;
        Ok(Self {
            top,
            attended,
            summary,
        })
    }
}
