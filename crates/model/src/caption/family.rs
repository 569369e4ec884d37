use attend_batch::Segments;
use attend_ops::Pass;
use candle_core::{Result, Tensor, bail};

use super::config::{CaptionConfig, Decoder};
use crate::decoding::Decoding;
use crate::embedding::{TargetTables, Widths};
use crate::recurrent::{self, Encoded};
use crate::transformer;
use crate::weights::Init;
use crate::{AttentionMap, Memory, Vocabularies};

/// The family of the decoder: its layers over the regions, if any, and its decoding half.
pub(super) struct Family {
    layers: Layers,
    pub(super) decoding: Box<dyn Decoding>,
}

/// What stands between the regions and the decoder.
enum Layers {
    /// No layers; the decoder starts from the mean of the regions.
    Start(recurrent::Start),
    Recurrent(recurrent::Encoder),
    /// No layers, and a decoder without a state.
    None,
    Transformer(transformer::Encoder),
}

impl Family {
    pub(super) fn new(
        config: &CaptionConfig,
        vocabularies: Vocabularies,
        init: &mut Init,
    ) -> Result<Self> {
        match config.decoder() {
            Some(Decoder::Recurrent(config)) => {
                let widths = Widths::from(config);
                let tables = TargetTables::new(config.tie, vocabularies.target, widths, init)?;
                Ok(Self {
                    layers: match config.encoder_layers {
                        0 => Layers::Start(recurrent::Start::new(config, init)?),
                        _ => {
                            let encoder = recurrent::Encoder::new(config, config.d_hidden, init)?;
                            Layers::Recurrent(encoder)
                        }
                    },
                    decoding: Box::new(recurrent::Decoding::new(config, tables, init)?),
                })
            }
            Some(Decoder::Transformer(config)) => {
                let widths = Widths::from(config);
                let tables = TargetTables::new(config.tie, vocabularies.target, widths, init)?;
                Ok(Self {
                    layers: match config.encoder_layers {
                        0 => Layers::None,
                        _ => Layers::Transformer(transformer::Encoder::new(config, init)?),
                    },
                    decoding: Box::new(transformer::Decoding::new(config, tables, init)?),
                })
            }
            None => bail!("a captioning model has exactly one decoder"),
        }
    }

    /// The memory of regions `[n, d]`. Appends the attention of the layers to `maps`, if given.
    pub(super) fn memory(
        &self,
        regions: Tensor,
        segments: Segments,
        maps: Option<&mut Vec<AttentionMap>>,
        pass: &Pass,
    ) -> Result<Memory> {
        let (states, finals) = match &self.layers {
            Layers::None => return Ok(Memory::new(regions, segments)),
            Layers::Transformer(encoder) => {
                let states = encoder.forward(&regions, &segments, maps, pass)?;
                return Ok(Memory::new(states, segments));
            }
            Layers::Start(start) => {
                let finals = start.states(&regions, &segments, pass)?;
                (regions, finals)
            }
            Layers::Recurrent(encoder) => encoder.forward(&regions, &segments, pass)?,
        };
        let encoded = Encoded {
            states,
            segments,
            finals,
        };
        Ok(encoded.into())
    }
}
