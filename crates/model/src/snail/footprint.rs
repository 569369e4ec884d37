use attend_ops::logits_held;

use super::config::SnailConfig;
use crate::{SearchFootprint, TrainingFootprint, Vocabularies};

impl SnailConfig {
    pub(crate) fn footprint(
        &self,
        vocabularies: Vocabularies,
    ) -> (TrainingFootprint, SearchFootprint) {
        (self.training(vocabularies), self.search(vocabularies))
    }

    /// What each convolution keeps of a token: its input, shifted, concatenated with it, and with its output; what
    /// each attention keeps of its queries, keys and values; and the gradients of the widest features.
    fn training(&self, vocabularies: Vocabularies) -> TrainingFootprint {
        let (d, blocks) = (self.d_model, self.blocks);
        let side = |attentions: usize| {
            let (mut width, mut kept) = (d, 0);
            for _ in 0..blocks {
                for _ in self.dilations() {
                    kept += 4 * width + 5 * self.filters;
                    width += self.filters;
                }
                for _ in 0..attentions {
                    kept += width + 3 * self.d_key + 5 * self.d_value;
                    width += self.d_value;
                }
            }
            kept + 6 * width + 6 * d
        };
        let memory = 3 * blocks * (self.d_key + self.d_value); // the decoder's keys and values of the source
        TrainingFootprint {
            source: side(1) + memory,
            target: side(2),
            source_to_source: 4 * blocks,
            target_to_target: 4 * blocks,
            target_to_source: 4 * blocks,
            fixed: vocabularies.target * d + logits_held(vocabularies.target),
        }
    }

    /// The channels of the encoder, the keys and values of the source, and for each row its channels and its keys
    /// and values, of every token.
    fn search(&self, vocabularies: Vocabularies) -> SearchFootprint {
        let block = self.dilations().count() * self.filters + 2 * self.d_value;
        let channels = self.d_model + self.blocks * block;
        let keys_values = self.blocks * (self.d_key + self.d_value);
        SearchFootprint {
            source: 6 * channels + keys_values,
            row: 6 * channels + 2 * vocabularies.target,
            row_token: channels + keys_values,
        }
    }
}
