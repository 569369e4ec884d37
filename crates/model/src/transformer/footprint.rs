use attend_ops::logits_held;

use super::config::{Activation, TransformerConfig};
use super::scores::Scores;
use crate::{SearchFootprint, TrainingFootprint, Vocabularies};

impl TransformerConfig {
    pub(crate) fn footprint(
        &self,
        vocabularies: Vocabularies,
    ) -> (TrainingFootprint, SearchFootprint) {
        (self.training(vocabularies), self.search(vocabularies))
    }

    /// What the backward pass of every sub-layer needs of its forward pass; what the backward pass of one layer
    /// holds; and embeddings, outputs and their gradients.
    fn training(&self, vocabularies: Vocabularies) -> TrainingFootprint {
        let (d, encoder, decoder) = (self.d_model, self.encoder_layers, self.decoder_layers);
        let inner = match self.activation {
            Activation::Relu => self.d_ff,
            Activation::Gelu | Activation::Swish => 2 * self.d_ff, // before and after
        };
        let network = 2 * d + inner;
        let fused = self.score == Scores::default();
        // Input, normalised, queries, keys, values, context. If heads are computed one by one, those again, the
        // scores, the weights before and after dropout, and a gradient.
        let (attention, cross, weights) = if fused {
            (6 * d, 4 * d, 0)
        } else {
            (16 * d, 12 * d, 4 * self.heads)
        };
        let source_keys_values = if fused { 2 * d } else { 8 * d };
        let passing = 12 * d + 2 * self.d_ff;
        TrainingFootprint {
            source: encoder * (attention + network) + decoder * source_keys_values + passing,
            target: decoder * (attention + cross + network) + passing,
            source_to_source: encoder * weights,
            target_to_target: decoder * weights,
            target_to_source: decoder * weights,
            // The loss accumulates the gradient of its own matrix.
            fixed: vocabularies.target * d + logits_held(vocabularies.target),
        }
    }

    /// The encoder's activations, the decoder's keys and values of the source and of every row, and the logits.
    fn search(&self, vocabularies: Vocabularies) -> SearchFootprint {
        let (d, decoder) = (self.d_model, self.decoder_layers);
        SearchFootprint {
            source: 12 * d + 2 * self.d_ff + 2 * d * decoder,
            row: 12 * d + 2 * self.d_ff + 2 * vocabularies.target,
            row_token: 2 * d * decoder,
        }
    }
}
