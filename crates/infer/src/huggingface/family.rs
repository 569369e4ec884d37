use attend_model::{NormKind, TransformerConfig};

/// The models of transformers that compute what Attend's Transformer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// Post-norm.
    Marian,
    /// Pre-norm, with a final norm after each stack, and the same positions, start token and output bias.
    Pegasus,
}

impl Family {
    pub(crate) const ALL: [Self; 2] = [Self::Marian, Self::Pegasus];

    /// The family of a `model_type`.
    pub(crate) fn of(model_type: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|family| family.model_type() == model_type)
    }

    pub(super) fn of_model(model: &TransformerConfig) -> Self {
        match model.norm {
            NormKind::Post => Self::Marian,
            NormKind::Pre => Self::Pegasus,
        }
    }

    pub(crate) fn model_type(self) -> &'static str {
        match self {
            Self::Marian => "marian",
            Self::Pegasus => "pegasus",
        }
    }

    pub(super) fn architecture(self) -> &'static str {
        match self {
            Self::Marian => "MarianMTModel",
            Self::Pegasus => "PegasusForConditionalGeneration",
        }
    }
}
