use attend_batch::Segments;
use attend_ops::{Body, Mask, MultiHead, Pass, Sublayer};
use candle_core::{Result, Tensor};

use super::block::{Block, Scene, run};
use super::builder::{Builder, Last};
use super::config::TransformerConfig;
use super::layer_dropout::LayerDropout;
use super::singles;
use crate::attention::Scope;
use crate::cache::Cache;
use crate::weights::Init;
use crate::{AttentionMap, Memory};

/// Figure 1, right: N layers of masked self-attention, attention to the encoder's output, and
/// feed-forward network.
pub(crate) struct Decoder {
    layers: Vec<[Block; 3]>,
    dropout: LayerDropout,
    last: Last,
}

impl Decoder {
    pub(crate) fn new(config: &TransformerConfig, init: &mut Init) -> Result<Self> {
        let layer = |n| {
            let layer = format!("model.decoder.layers.{n}");
            let mut builder = Builder {
                layer,
                config,
                init,
            };
            Ok([
                builder.itself(Mask::Causal)?,
                builder.memory()?,
                builder.feed_forward()?,
            ])
        };
        let layers: Vec<_> = (0..config.decoder_layers)
            .map(layer)
            .collect::<Result<_>>()?;
        let (rate, stack) = (config.layer_dropout, "model.decoder.layers");
        Ok(Self {
            dropout: LayerDropout::new(rate, stack, layers.len(), init),
            layers,
            last: Last::new("model.decoder.layer_norm", config, init)?,
        })
    }

    /// Every position at once: `[n, d]` to `[n, d]`; adds to `maps` if there are any.
    pub(crate) fn forward(
        &self,
        x: &Tensor,
        sentences: &Segments,
        memory: &Memory,
        maps: Option<&mut Vec<AttentionMap>>,
        pass: &Pass,
    ) -> Result<Tensor> {
        let scene = Scene {
            sentences,
            memory: Some(memory),
        };
        let kept = self.dropout.kept(pass)?;
        let x = run(
            x,
            kept.iter().map(|&layer| &self.layers[layer][..]),
            scene,
            maps,
            pass,
        )?;
        self.last.forward(x, pass)
    }

    /// Whether every block has a fused implementation.
    pub(crate) fn is_fused(&self) -> bool {
        self.layers.iter().flatten().all(Block::is_fused)
    }

    /// The sub-layers, in order.
    pub(crate) fn sublayers(&self) -> impl Iterator<Item = &Sublayer> + Clone {
        self.layers.iter().flatten().map(|block| &block.sublayer)
    }

    /// The final normalisation.
    pub(crate) fn finish(&self, x: Tensor, pass: &Pass) -> Result<Tensor> {
        self.last.forward(x, pass)
    }

    /// Every layer's keys and values of the source, for [`Decoder::step`].
    pub(crate) fn source_keys_values(&self, memory: &Memory, pass: &Pass) -> Result<Vec<Tensor>> {
        let blocks = self.layers.iter().flatten();
        let bodies = blocks.map(|block| &block.sublayer.body);
        let keys_values = bodies.filter_map(|body| match body {
            Body::Memory(heads) => Some(heads.keys_values(&memory.states, pass)),
            _ => None,
        });
        keys_values.collect()
    }

    /// One position, one row per hypothesis: `[rows, d]` to `[rows, d]`; adds the cross-attention to `maps` if
    /// there are any.
    pub(crate) fn step(
        &self,
        x: &Tensor,
        cache: &Cache,
        mut maps: Option<&mut Vec<AttentionMap>>,
        pass: &Pass,
    ) -> Result<Tensor> {
        let rows = x.dim(0)?;
        let (each, by_sentence) = (singles(rows), cache.rows_by_sentence());
        let mut x = x.clone();
        let layers = self.layers.iter().zip(&cache.own).zip(&cache.source);
        for (layer, ((blocks, own), source)) in layers.enumerate() {
            for block in blocks {
                let Sublayer { residual, body } = &block.sublayer;
                x = residual.around(&x, &each, pass, |x| match body {
                    Body::Itself(heads, _) => {
                        let (own, keys) = append(heads, x, own, cache.length, pass)?;
                        let attended = Attended {
                            queries: &each,
                            keys: &keys,
                            keys_values: &own,
                        };
                        attended.step(block, heads, x, cache.length, pass)
                    }
                    Body::Memory(heads) => {
                        let attended = Attended {
                            queries: &by_sentence,
                            keys: &cache.segments,
                            keys_values: source,
                        };
                        let Some(maps) = &mut maps else {
                            return attended.step(block, heads, x, cache.length, pass);
                        };
                        let (y, weights) =
                            attended.step_with_weights(block, heads, x, cache.length, pass)?;
                        maps.extend(block.maps(layer, weights));
                        Ok(y)
                    }
                    Body::FeedForward(network) => network.forward(x, &each, pass),
                })?;
            }
        }
        self.last.forward(x, pass)
    }
}

/// What a step attends to, and who attends to it.
struct Attended<'a> {
    queries: &'a Segments,
    keys: &'a Segments,
    /// `[m, 2d]`
    keys_values: &'a Tensor,
}

impl Attended<'_> {
    fn step(
        &self,
        block: &Block,
        heads: &MultiHead,
        x: &Tensor,
        position: usize,
        pass: &Pass,
    ) -> Result<Tensor> {
        if block.is_fused() {
            return heads.attend(x, self.queries, self.keys_values, self.keys, pass);
        }
        let (y, _) = self.step_with_weights(block, heads, x, position, pass)?;
        Ok(y)
    }

    /// The same head by head, and the weights of every head.
    fn step_with_weights(
        &self,
        block: &Block,
        heads: &MultiHead,
        x: &Tensor,
        position: usize,
        pass: &Pass,
    ) -> Result<(Tensor, Vec<Tensor>)> {
        let scope = Scope::at(position, self.queries.clone(), self.keys);
        block.attend(heads, x, self.keys_values, &scope, pass)
    }
}

/// Writes the keys and values of each row to position `length` of its cache `[rows, capacity, 2d]`. Returns the
/// cache as `[rows · capacity, 2d]`, and where the keys of each row are.
fn append(
    heads: &MultiHead,
    x: &Tensor,
    cache: &Tensor,
    length: usize,
    pass: &Pass,
) -> Result<(Tensor, Segments)> {
    let kv = heads.keys_values(x, pass)?; // (rows, 2d)
    cache.slice_set(&kv.unsqueeze(1)?, 1, length)?;
    let (rows, capacity, width) = cache.dims3()?;
    let keys = Segments::with_capacity(rows, capacity, length + 1);
    Ok((cache.reshape((rows * capacity, width))?, keys))
}
