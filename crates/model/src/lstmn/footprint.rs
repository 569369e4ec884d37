use attend_ops::logits_held;

use super::config::{FusionKind, LstmnConfig};
use crate::{SearchFootprint, TrainingFootprint, Vocabularies};

impl LstmnConfig {
    pub(crate) fn footprint(
        &self,
        vocabularies: Vocabularies,
    ) -> (TrainingFootprint, SearchFootprint) {
        (self.training(vocabularies), self.search(vocabularies))
    }

    /// What each layer keeps of a token: its input and the input side of its gates, what the operation keeps of
    /// gates, queries, keys and what was read, the states, and the gradients of these.
    fn training(&self, vocabularies: Vocabularies) -> TrainingFootprint {
        let (e, h) = (self.d_embed, self.d_hidden);
        let layer = 30 * h;
        let (reads, keeps) = match self.fusion {
            FusionKind::Shallow => (16 * h + e, 8 * h),
            FusionKind::Deep => (14 * h, 10 * h),
        };
        TrainingFootprint {
            source: 2 * e + self.encoder_layers * layer + keeps,
            target: 2 * e + self.decoder_layers * layer + reads,
            source_to_source: self.encoder_layers,
            target_to_target: self.decoder_layers,
            target_to_source: 1,
            fixed: vocabularies.target * h + logits_held(vocabularies.target),
        }
    }

    /// The encoder's tapes, the keys and values of the source, and for each row the tapes of every layer.
    fn search(&self, vocabularies: Vocabularies) -> SearchFootprint {
        let (e, h) = (self.d_embed, self.d_hidden);
        SearchFootprint {
            source: 2 * e + 22 * h + 3 * h,
            row: 2 * e + (self.decoder_layers + 2) * 20 * h + 2 * vocabularies.target,
            row_token: self.decoder_layers * 3 * h + 2,
        }
    }
}
