use attend_batch::Segments;
use attend_ops::Pass;
use candle_core::{Result, Tensor};

use super::config::LstmnConfig;
use super::layer::Layer;
use super::own_map;
use crate::weights::Init;
use crate::{AttentionMap, Place};

/// Layers that read from left to right.
pub(super) struct Encoder {
    layers: Vec<Layer>,
    width: usize,
}

impl Encoder {
    pub(super) fn new(config: &LstmnConfig, init: &mut Init) -> Result<Self> {
        let h = config.d_hidden;
        let layers = (0..config.encoder_layers).map(|n| {
            let name = format!("model.encoder.layers.{n}");
            let (inputs, dropout) = match n {
                0 => (config.d_embed, 0.0),
                _ => (h, config.dropout),
            };
            Layer::new(&name, inputs, h, dropout, None, init)
        });
        Ok(Self {
            layers: layers.collect::<Result<_>>()?,
            width: h,
        })
    }

    /// Embedded tokens `[n, e]` to the tapes of the highest layer, `[n, 2h]`, and how every layer attended, in
    /// evaluation.
    pub(super) fn forward(
        &self,
        x: &Tensor,
        sentences: &Segments,
        pass: &Pass,
    ) -> Result<(Tensor, Vec<AttentionMap>)> {
        let (mut states, mut maps) = (x.clone(), Vec::new());
        for (number, layer) in self.layers.iter().enumerate() {
            let x = match number {
                0 => x.clone(),
                _ => states.narrow(1, 0, self.width)?.contiguous()?,
            };
            let tapes = layer.forward(&x, sentences, None, pass)?;
            maps.extend(
                tapes
                    .weights
                    .map(|it| own_map(Place::Encoder, number, it.own)),
            );
            states = tapes.states;
        }
        Ok((states, maps))
    }
}
