use std::collections::BTreeMap;

use candle_core::{Device, Result};

use crate::weights::{Init, Values};
use crate::{LoadError, ModelConfig, Vocabularies};

/// The memory that a model takes, computed from its config and vocabularies before anything is built. Estimates
/// are rather too high. All counts are numbers of 4 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// All weights together.
    pub weights: usize,
    /// Those of them that are not trained.
    pub frozen: usize,
    pub training: TrainingFootprint,
    pub search: SearchFootprint,
}

/// What the fused operations hold at once while they train a model, beside its parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrainingFootprint {
    /// For each token of the source. A picture is one token.
    pub source: usize,
    /// For each token of the target.
    pub target: usize,
    /// For each token of the source and each position of the longest source: attention weights that are kept.
    pub source_to_source: usize,
    /// For each token of the target and each position of the longest target.
    pub target_to_target: usize,
    /// For each token of the target and each position of the longest source.
    pub target_to_source: usize,
    /// Whatever the batch.
    pub fixed: usize,
}

impl TrainingFootprint {
    /// That of several passes over the same batch, which are differentiated together.
    pub fn of_passes(self, passes: usize) -> Self {
        Self {
            source: passes * self.source,
            target: passes * self.target,
            source_to_source: passes * self.source_to_source,
            target_to_target: passes * self.target_to_target,
            target_to_source: passes * self.target_to_source,
            fixed: self.fixed,
        }
    }
}

/// What a search holds beside the weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchFootprint {
    /// For each token of the source: the encoder's states, and what the decoder caches of them.
    pub source: usize,
    /// For each row (a hypothesis): states, logits.
    pub row: usize,
    /// For each row and each token that it has capacity for: keys and values.
    pub row_token: usize,
}

/// The size of a training batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchSize {
    /// Tokens of all sources.
    pub source: usize,
    /// Tokens of all targets.
    pub target: usize,
    pub longest_source: usize,
    pub longest_target: usize,
}

impl BatchSize {
    /// The size with one more pair of these lengths.
    pub fn with(self, source: usize, target: usize) -> Self {
        Self {
            source: self.source + source,
            target: self.target + target,
            longest_source: self.longest_source.max(source),
            longest_target: self.longest_target.max(target),
        }
    }
}

/// Bytes of a number.
const FLOAT: u64 = 4;

impl Footprint {
    /// Bytes of the weights.
    pub fn weight_bytes(&self) -> u64 {
        FLOAT.saturating_mul(self.weights as u64)
    }

    /// Bytes that training holds whatever the batch: values, gradients, Adam's two moments and, with `average`,
    /// the moving average; and while a checkpoint is written, a copy of all but the gradients and of one more.
    /// What is frozen has only values.
    pub fn optimizer_bytes(&self, average: bool) -> u64 {
        let copies = 8 + 2 * u64::from(average);
        let frozen = FLOAT.saturating_mul(self.frozen as u64);
        copies
            .saturating_mul(self.weight_bytes().saturating_sub(frozen))
            .saturating_add(3 * frozen)
            .saturating_add(FLOAT.saturating_mul(self.training.fixed as u64))
    }

    /// Bytes that training holds for a batch, at most.
    pub fn batch_bytes(&self, batch: BatchSize) -> u64 {
        let each = &self.training;
        let numbers = batch.source * each.source
            + batch.target * each.target
            + batch.source * batch.longest_source * each.source_to_source
            + batch.target * batch.longest_target * each.target_to_target
            + batch.target * batch.longest_source * each.target_to_source;
        // Buffers that fit no other batch are kept for a while.
        FLOAT * numbers as u64 * 3 / 2
    }

    /// Bytes that a search holds beside the weights, at most: `rows` hypotheses of at most `length` tokens, of
    /// sources with `source_tokens` tokens in all.
    pub fn search_bytes(&self, source_tokens: usize, rows: usize, length: usize) -> u64 {
        // The cache of the composed kernels doubles its capacity, and the old one is there until the new one is
        // filled. That of the fused ones grows in blocks and takes less.
        let capacity = length.next_power_of_two() * 3 / 2;
        let each = &self.search;
        let numbers = source_tokens * each.source + rows * (each.row + capacity * each.row_token);
        FLOAT * numbers as u64
    }
}

impl ModelConfig {
    /// The memory that the model takes. Nothing is allocated to compute it.
    pub fn footprint(&self, vocabularies: Vocabularies) -> Result<Footprint> {
        let (training, search) = match self {
            ModelConfig::Transformer(config) => config.footprint(vocabularies),
            ModelConfig::Recurrent(config) => config.footprint(vocabularies),
            ModelConfig::Snail(config) => config.footprint(vocabularies),
            ModelConfig::Caption(config) => config.footprint(vocabularies),
            ModelConfig::Lstmn(config) => config.footprint(vocabularies),
        };
        Ok(Footprint {
            weights: self.count_weights(vocabularies)?,
            frozen: 0,
            training,
            search,
        })
    }

    /// The number of values in all weights. Layers from the third on are alike, so that they are multiplied, not
    /// listed: there may be very many.
    fn count_weights(&self, vocabularies: Vocabularies) -> Result<usize> {
        const LISTED: usize = 3;
        let count = |encoder: usize, decoder: usize| {
            let shapes = self
                .with_layers(encoder, decoder)
                .weight_shapes(vocabularies)?;
            let sizes = shapes.values().map(|shape| shape.iter().product::<usize>());
            Ok(sizes.fold(0, usize::saturating_add))
        };
        let (encoder, decoder) = self.layers();
        let (first_encoder, first_decoder) = (encoder.min(LISTED), decoder.min(LISTED));
        let listed = count(first_encoder, first_decoder)?;
        let rest = |layers: usize, fewer: Result<usize>| {
            let each = listed - fewer?;
            Result::Ok((layers - LISTED).saturating_mul(each))
        };
        let mut all = listed;
        if encoder > LISTED {
            all = all.saturating_add(rest(encoder, count(LISTED - 1, first_decoder))?);
        }
        if decoder > LISTED {
            all = all.saturating_add(rest(decoder, count(first_encoder, LISTED - 1))?);
        }
        Ok(all)
    }

    /// The numbers of layers that are alike, of encoder and decoder.
    fn layers(&self) -> (usize, usize) {
        match self {
            ModelConfig::Transformer(config) => (config.encoder_layers, config.decoder_layers),
            ModelConfig::Recurrent(config) => (config.encoder_layers, config.decoder_layers),
            ModelConfig::Lstmn(config) => (config.encoder_layers, config.decoder_layers),
            ModelConfig::Snail(_) => (0, 0), // each block is wider than the one before it
            ModelConfig::Caption(config) => config.layers(),
        }
    }

    /// The same model with these numbers of layers.
    fn with_layers(&self, encoder: usize, decoder: usize) -> Self {
        let mut config = self.clone();
        match &mut config {
            ModelConfig::Transformer(config) => {
                (config.encoder_layers, config.decoder_layers) = (encoder, decoder);
            }
            ModelConfig::Recurrent(config) => {
                (config.encoder_layers, config.decoder_layers) = (encoder, decoder);
            }
            ModelConfig::Lstmn(config) => {
                (config.encoder_layers, config.decoder_layers) = (encoder, decoder);
            }
            ModelConfig::Snail(_) => {}
            ModelConfig::Caption(config) => config.set_layers(encoder, decoder),
        }
        config
    }

    /// Checks that tensors of these shapes, by name, are the weights of the model.
    pub fn check_weights(
        &self,
        vocabularies: Vocabularies,
        found: &BTreeMap<String, Vec<usize>>,
    ) -> std::result::Result<(), LoadError> {
        self.check_weight_count(found)?;
        let shapes = self.weight_shapes(vocabularies);
        let shapes = shapes.map_err(|error| LoadError::Candle(error.to_string()))?;
        LoadError::check(found, &shapes)
    }

    /// Checks that there are at least as many tensors and values as the model has, without listing its weights: a
    /// config can ask for so many layers or heads that the list fills the memory.
    pub fn check_weight_count(
        &self,
        found: &BTreeMap<String, Vec<usize>>,
    ) -> std::result::Result<(), LoadError> {
        let size = |shape: &Vec<usize>| shape.iter().fold(1, |n: usize, d| n.saturating_mul(*d));
        let values = found.values().map(size).fold(0, usize::saturating_add);
        let (tensors_needed, values_needed) = self.least_weights();
        for (what, found, expected) in [
            ("tensors", found.len(), tensors_needed),
            ("values", values, values_needed),
        ] {
            if found < expected {
                return Err(LoadError::TooFew {
                    what,
                    found,
                    expected,
                });
            }
        }
        Ok(())
    }

    /// The shape of every weight, by name. Nothing is allocated to find out.
    pub fn weight_shapes(
        &self,
        vocabularies: Vocabularies,
    ) -> Result<BTreeMap<String, Vec<usize>>> {
        let model = self.with(vocabularies, Init::new(Values::Shapes, &Device::Cpu))?;
        let weights = model.weights().iter();
        Ok(weights
            .map(|weight| (weight.name().to_string(), weight.dims()))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LstmnConfig, RecurrentConfig, SnailConfig, TransformerConfig};

    #[test]
    fn counted_weights_are_those_of_the_list() -> Result<()> {
        let vocabularies = Vocabularies {
            source: Some(9),
            target: 11,
            joint: false,
        };
        let recurrent = RecurrentConfig {
            d_hidden: 8,
            ..RecurrentConfig::default()
        };
        let lstmn = LstmnConfig {
            d_hidden: 8,
            ..LstmnConfig::default()
        };
        let models = [
            ModelConfig::Transformer(TransformerConfig::default()),
            ModelConfig::Recurrent(recurrent),
            ModelConfig::Snail(SnailConfig::default()),
            ModelConfig::Lstmn(lstmn),
        ];
        for model in models {
            for (encoder, decoder) in [(1, 1), (2, 5), (3, 3), (4, 2), (6, 7)] {
                let model = model.with_layers(encoder, decoder);
                let shapes = model.weight_shapes(vocabularies)?;
                let sizes = shapes.values().map(|shape| shape.iter().product::<usize>());
                let listed: usize = sizes.sum();
                assert_eq!(
                    model.count_weights(vocabularies)?,
                    listed,
                    "{encoder}, {decoder}"
                );
            }
        }
        Ok(())
    }
}
