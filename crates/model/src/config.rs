use attend_batch::SourceShape;
use attend_config::{ConfigError, check_ranges};
use candle_core::{Device, Tensor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::weights::{Init, Loaded, Packing, Values};
use crate::{
    Caption, CaptionConfig, Lstmn, LstmnConfig, Recurrent, RecurrentConfig, ScoreKind, Seq2Seq,
    Snail, SnailConfig, Transformer, TransformerConfig,
};

/// The model: one table, whose name is the family.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum ModelConfig {
    /// The Transformer of "Attention Is All You Need" (Vaswani et al. 2017).
    Transformer(TransformerConfig),
    /// A recurrent encoder and decoder, with or without attention (Sutskever et al. 2014, Bahdanau et
    /// al. 2015, Luong et al. 2015).
    Recurrent(RecurrentConfig),
    /// Causal convolutions and attention in turns, without positions: "A Simple Neural Attentive
    /// Meta-Learner" (Mishra et al. 2017).
    Snail(SnailConfig),
    /// Captions of pictures, or words from rows of features: "Show, Attend and Tell" (Xu et al. 2015).
    Caption(CaptionConfig),
    /// Recurrent layers that attend to their own past states: "Long Short-Term Memory-Networks for Machine
    /// Reading" (Cheng et al. 2016).
    Lstmn(LstmnConfig),
}

impl Default for ModelConfig {
    fn default() -> Self {
        ModelConfig::Transformer(TransformerConfig::default())
    }
}

/// The number of tokens on each side, including `<pad>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vocabularies {
    /// None if the source is not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<usize>,
    pub target: usize,
    /// Whether both sides have the same vocabulary.
    pub joint: bool,
}

impl Vocabularies {
    /// Ids have 32 bits.
    const MOST: usize = u32::MAX as usize;

    fn validate(&self) -> Result<(), ConfigError> {
        let sizes = [("source", self.source), ("target", Some(self.target))];
        for (side, size) in sizes {
            let size = size.unwrap_or(1);
            if !(1..=Self::MOST).contains(&size) {
                let hint = format!("it must be from 1 to {}", Self::MOST);
                let key = format!("vocabularies.{side}");
                return Err(ConfigError::new(key, format!("is {size}"), hint));
            }
        }
        Ok(())
    }
}

impl ModelConfig {
    /// Checks every value: its range, and whether it goes together with the others.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check_ranges(self, "model")?;
        match self {
            ModelConfig::Transformer(config) => config.validate(),
            ModelConfig::Recurrent(config) => config.validate(),
            ModelConfig::Snail(_) => Ok(()),
            ModelConfig::Caption(config) => config.validate(),
            ModelConfig::Lstmn(config) => config.validate(),
        }
    }

    /// The same, and what depends on the vocabularies.
    pub fn validate_with(&self, vocabularies: Vocabularies) -> Result<(), ConfigError> {
        self.validate()?;
        vocabularies.validate()?;
        self.check_tie(vocabularies.joint)
    }

    /// Checks that embeddings are shared only if they can be. `joint` says whether both sides have one
    /// vocabulary.
    pub fn check_tie(&self, joint: bool) -> Result<(), ConfigError> {
        match self {
            ModelConfig::Transformer(config) => config.tie.validate("model.transformer.tie", joint),
            ModelConfig::Recurrent(config) => config.tie.validate("model.recurrent.tie", joint),
            ModelConfig::Snail(config) => config.tie.validate("model.snail.tie", joint),
            ModelConfig::Caption(config) => config.check_tie(),
            ModelConfig::Lstmn(config) => config.tie.validate("model.lstmn.tie", joint),
        }
    }

    /// How wide the states are that tokens are predicted from.
    pub fn width(&self) -> usize {
        match self {
            ModelConfig::Transformer(config) => config.d_model,
            ModelConfig::Recurrent(config) => config.d_hidden,
            ModelConfig::Snail(config) => config.d_model,
            ModelConfig::Caption(config) => config.width(),
            ModelConfig::Lstmn(config) => config.d_hidden,
        }
    }

    /// What the sources of the model are.
    pub fn source(&self) -> SourceShape {
        match self {
            ModelConfig::Transformer(_)
            | ModelConfig::Recurrent(_)
            | ModelConfig::Snail(_)
            | ModelConfig::Lstmn(_) => SourceShape::Text,
            ModelConfig::Caption(config) => config.source(),
        }
    }

    /// Lines and columns of the regions that a picture is divided into; none if the sources are not pictures.
    pub fn regions(&self) -> Option<(usize, usize)> {
        match self {
            ModelConfig::Caption(config) => {
                let map = config.regions()?;
                Some((map.height, map.width))
            }
            _ => None,
        }
    }

    /// How many weights the model has at least, and values in them, without listing them: one for each layer,
    /// and the four square matrices of a Transformer's self-attention, or the six of an LSTMN's.
    pub(crate) fn least_weights(&self) -> (usize, usize) {
        match self {
            ModelConfig::Transformer(config) => {
                let layers = config.encoder_layers + config.decoder_layers;
                (layers, 4 * layers * config.d_model * config.d_model)
            }
            ModelConfig::Recurrent(config) => (config.encoder_layers + config.decoder_layers, 0),
            ModelConfig::Snail(config) => (2 * config.blocks, 0),
            ModelConfig::Caption(config) => {
                let (encoder, decoder) = config.layers();
                (config.convolutions() + encoder + decoder, 0)
            }
            ModelConfig::Lstmn(config) => {
                let layers = config.encoder_layers + config.decoder_layers;
                (6 * layers, 6 * layers * config.d_hidden * config.d_hidden)
            }
        }
    }

    /// A model to train, with initial values.
    pub fn build(
        &self,
        vocabularies: Vocabularies,
        seed: u64,
        device: &Device,
    ) -> candle_core::Result<Box<dyn Seq2Seq>> {
        self.with(vocabularies, Init::new(Values::Seed(seed), device))
    }

    /// A model to train that begins with these weights. `load` gives each tensor by its name, and `frozen` says
    /// which of them are not trained: they are read-only and have no gradient.
    pub fn build_from(
        &self,
        vocabularies: Vocabularies,
        device: &Device,
        load: &mut dyn FnMut(&str) -> candle_core::Result<Tensor>,
        frozen: &dyn Fn(&str) -> bool,
    ) -> candle_core::Result<Box<dyn Seq2Seq>> {
        let values = Values::Given { load, frozen };
        self.with(vocabularies, Init::new(values, device))
    }

    /// A model of these weights, which does not train: it has no parameters and no gradients. `load` gives each
    /// tensor by its name; see [`ModelConfig::weight_shapes`].
    pub fn load(
        &self,
        vocabularies: Vocabularies,
        device: &Device,
        load: &mut dyn FnMut(&str) -> candle_core::Result<Tensor>,
    ) -> candle_core::Result<Box<dyn Seq2Seq>> {
        self.with(vocabularies, Init::new(Values::Loaded(load), device))
    }

    /// The same, with its matrices in the order in which the fused kernels of the CPU read them. It can encode and
    /// step, but neither train nor use the composed kernels. See [`ModelConfig::can_pack`].
    pub fn load_packed(
        &self,
        vocabularies: Vocabularies,
        packing: Packing,
        load: &mut dyn FnMut(&str) -> candle_core::Result<Loaded>,
    ) -> candle_core::Result<Box<dyn Seq2Seq>> {
        let values = Values::Packed { load, packing };
        self.with(vocabularies, Init::new(values, &Device::Cpu))
    }

    /// Whether the matrices of the model can be packed: those of a Transformer, or of a captioning model with its
    /// decoder, whose scores are all scaled dot products.
    pub fn can_pack(&self) -> bool {
        let scaled = |score: &ScoreKind| *score == ScoreKind::ScaledDot;
        match self {
            ModelConfig::Transformer(config) => config.score.0.iter().all(scaled),
            ModelConfig::Caption(config) => {
                let transformer = config.transformer.as_ref();
                transformer.is_some_and(|config| config.score.0.iter().all(scaled))
            }
            ModelConfig::Recurrent(_) | ModelConfig::Snail(_) | ModelConfig::Lstmn(_) => false,
        }
    }

    pub(crate) fn with(
        &self,
        vocabularies: Vocabularies,
        init: Init,
    ) -> candle_core::Result<Box<dyn Seq2Seq>> {
        Ok(match self {
            ModelConfig::Transformer(config) => {
                Box::new(Transformer::new(config, vocabularies, init)?)
            }
            ModelConfig::Recurrent(config) => Box::new(Recurrent::new(config, vocabularies, init)?),
            ModelConfig::Snail(config) => Box::new(Snail::new(config, vocabularies, init)?),
            ModelConfig::Caption(config) => Box::new(Caption::new(config, vocabularies, init)?),
            ModelConfig::Lstmn(config) => Box::new(Lstmn::new(config, vocabularies, init)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_vocabulary_is_written_as_a_number_or_left_out() {
        let text = Vocabularies {
            source: Some(8000),
            target: 9000,
            joint: false,
        };
        let features = Vocabularies {
            source: None,
            ..text
        };
        for (vocabularies, json) in [
            (text, r#"{"source":8000,"target":9000,"joint":false}"#),
            (features, r#"{"target":9000,"joint":false}"#),
        ] {
            assert_eq!(serde_json::to_string(&vocabularies).unwrap(), json);
            let read: Vocabularies = serde_json::from_str(json).unwrap();
            assert_eq!(read, vocabularies);
        }
    }

    #[test]
    fn every_model_has_at_least_the_weights_that_it_is_said_to_have() {
        let vocabularies = Vocabularies {
            source: Some(9),
            target: 9,
            joint: true,
        };
        for config in [
            ModelConfig::Transformer(TransformerConfig::default()),
            ModelConfig::Recurrent(RecurrentConfig::default()),
            ModelConfig::Snail(SnailConfig::default()),
            ModelConfig::Lstmn(LstmnConfig::default()),
        ] {
            let shapes = config.weight_shapes(vocabularies).unwrap();
            let values: usize = shapes.values().map(|s| s.iter().product::<usize>()).sum();
            let (least_tensors, least_values) = config.least_weights();
            assert!(least_tensors <= shapes.len() && least_values <= values);
            assert_eq!(config.check_weights(vocabularies, &shapes), Ok(()));
        }
    }

    #[test]
    fn a_model_that_reads_text_needs_a_source_vocabulary() {
        let config = ModelConfig::Snail(SnailConfig::default());
        let vocabularies = Vocabularies {
            source: None,
            target: 9,
            joint: false,
        };
        let error = config.build(vocabularies, 1, &Device::Cpu).err();
        let error = error.expect("an error").to_string();
        assert!(error.contains("its source has no vocabulary"), "{error}");
    }
}
