use attend_ops::{Cell, logits_held};

use super::attention_config::{AttentionChoice, AttentionConfig};
use super::config::{ContextSteps, RecurrentConfig};
use crate::{AlignKind, ContextKind, ScoreKind, SearchFootprint, TrainingFootprint, Vocabularies};

impl RecurrentConfig {
    pub(crate) fn footprint(
        &self,
        vocabularies: Vocabularies,
    ) -> (TrainingFootprint, SearchFootprint) {
        (self.training(vocabularies), self.search(vocabularies))
    }

    /// What each layer keeps of a token: its input, the gates of all steps before and after their non-linearity,
    /// states and their gradients; and what the decoder's steps hand to each other.
    fn training(&self, vocabularies: Vocabularies) -> TrainingFootprint {
        let (e, h) = (self.d_embed, self.d_hidden);
        let cell = Cell::from(self.cell);
        let layer = 3 * cell.gates() * h + 4 * cell.state_width(h);
        let (attention, weights) = match &self.attention {
            AttentionChoice::None => match self.context {
                ContextSteps::First => (2 * h, 0),
                // The summary, its gates and the readout, whose input is three of them.
                ContextSteps::Every => (2 * h + 2 * (2 * h + e) + 2 * cell.gates() * h + 4 * h, 0),
            },
            AttentionChoice::Some(attention) => attention.training(h),
        };
        TrainingFootprint {
            source: 2 * e + self.encoder_layers * layer + 6 * h,
            target: 2 * e + self.decoder_layers * layer + attention,
            target_to_source: weights,
            fixed: vocabularies.target * h + logits_held(vocabularies.target),
            ..TrainingFootprint::default()
        }
    }

    /// The encoder's gates and states, the keys and values of the source, and for each row the states of every
    /// layer, their gates and the logits. No row grows.
    fn search(&self, vocabularies: Vocabularies) -> SearchFootprint {
        let (e, h) = (self.d_embed, self.d_hidden);
        let cell = Cell::from(self.cell);
        let layer = 2 * cell.gates() * h + 2 * cell.state_width(h);
        let context = match self.context {
            ContextSteps::First => 0,
            ContextSteps::Every => 2 * (h + cell.gates() * h),
        };
        SearchFootprint {
            source: 2 * e + layer + 4 * h,
            row: 2 * e + self.decoder_layers * layer + 8 * h + context + 2 * vocabularies.target,
            row_token: 0,
        }
    }
}

impl AttentionConfig {
    /// Numbers that are kept for each token of the target, and for it and each position of the source.
    fn training(&self, h: usize) -> (usize, usize) {
        let positions = match self.score() {
            ScoreKind::Location => 3 * self.positions(),
            _ => 0,
        };
        let align = match self.align {
            AlignKind::LocalP => 12,
            _ => 6,
        };
        let context = match self.context {
            ContextKind::Hard => 14,
            ContextKind::Soft => 0,
        };
        (12 * h + positions, align + context)
    }
}
