use attend_batch::Segments;
use attend_ops::{Body, Mask, MultiHead, Pass, Sublayer, dropout, linear, mix, stack};
use candle_core::{Result, Tensor, bail};

use crate::attention::{Align, KeysValues, Scope, Score};
use crate::{AttentionMap, Memory, Place};

/// A sub-layer, and the score of each head of its attention.
pub(crate) struct Block {
    pub(crate) sublayer: Sublayer,
    /// One for each head; empty for a feed-forward network.
    pub(crate) scores: Vec<Score>,
}

/// The inputs of a stack's attentions.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    /// The sentences of the stack's input, for self-attention.
    pub(crate) sentences: &'a Segments,
    /// The encoder's output, for cross-attention.
    pub(crate) memory: Option<&'a Memory>,
}

/// Applies layers of blocks in order: `[n, d]` to `[n, d]`. If all scores are scaled dot products, attention is
/// fused, which does not return weights. With other scores, or if `maps` are requested, attention is computed
/// head by head.
pub(crate) fn run<'a>(
    x: &Tensor,
    layers: impl Iterator<Item = &'a [Block]> + Clone,
    scene: Scene,
    maps: Option<&mut Vec<AttentionMap>>,
    pass: &Pass,
) -> Result<Tensor> {
    let mut blocks = layers.clone().flatten();
    if maps.is_none() && blocks.all(Block::is_fused) {
        let memory = scene.memory.map(|memory| attend_ops::AttendedStates {
            states: &memory.states,
            segments: &memory.segments,
        });
        let sublayers = layers.flatten().map(|block| &block.sublayer);
        return stack(x, scene.sentences, memory, sublayers, pass);
    }
    let mut computed = Vec::new();
    let mut x = x.clone();
    for (layer, blocks) in layers.enumerate() {
        for block in blocks {
            let (y, weights) = block.forward(&x, scene, pass)?;
            x = y;
            computed.extend(block.maps(layer, weights));
        }
    }
    if let Some(maps) = maps {
        maps.extend(computed);
    }
    Ok(x)
}

impl Block {
    /// Whether the block has a fused implementation.
    pub(crate) fn is_fused(&self) -> bool {
        let fused = |score: &Score| matches!(score, Score::ScaledDot { .. });
        self.scores.iter().all(fused)
    }

    /// The attention maps of the block, from the weights of its heads.
    pub(crate) fn maps(&self, layer: usize, weights: Vec<Tensor>) -> Vec<AttentionMap> {
        let heads = weights.into_iter().enumerate();
        let map = |(head, weights)| AttentionMap {
            place: self.place(),
            layer,
            head,
            weights,
        };
        heads.map(map).collect()
    }

    /// Which attention this is. A feed-forward network has no maps, so its place is never used.
    fn place(&self) -> Place {
        match &self.sublayer.body {
            Body::Itself(_, Mask::Full) => Place::Encoder,
            Body::Itself(_, Mask::Causal) => Place::Decoder,
            Body::Memory(_) | Body::FeedForward(_) => Place::Cross,
        }
    }

    /// The output of the block, and the weights of every head.
    fn forward(&self, x: &Tensor, scene: Scene, pass: &Pass) -> Result<(Tensor, Vec<Tensor>)> {
        let Sublayer { residual, body } = &self.sublayer;
        let mut weights = Vec::new();
        let y = residual.around(x, scene.sentences, pass, |x| match body {
            Body::Itself(heads, mask) => {
                let scope = Scope::new(scene.sentences, scene.sentences, *mask);
                let kv = heads.keys_values(x, pass)?;
                let (y, of_heads) = self.attend(heads, x, &kv, &scope, pass)?;
                weights = of_heads;
                Ok(y)
            }
            Body::Memory(heads) => {
                let Some(memory) = scene.memory else {
                    bail!("cross-attention has no memory to attend to")
                };
                let scope = Scope::new(scene.sentences, &memory.segments, Mask::Full);
                let kv = heads.keys_values(&memory.states, pass)?;
                let (y, of_heads) = self.attend(heads, x, &kv, &scope, pass)?;
                weights = of_heads;
                Ok(y)
            }
            Body::FeedForward(network) => network.forward(x, scene.sentences, pass),
        })?;
        Ok((y, weights))
    }

    /// Attention of queries computed from x `[n, d]` to keys and values `[m, 2d]`, head by head. Returns the
    /// output `[n, d]` and the weights of every head `[n, s]`, before dropout.
    pub(crate) fn attend(
        &self,
        heads: &MultiHead,
        x: &Tensor,
        kv: &Tensor,
        scope: &Scope,
        pass: &Pass,
    ) -> Result<(Tensor, Vec<Tensor>)> {
        let q = linear(x, &[&heads.query], pass)?;
        let d = q.dim(1)?;
        let width = d / heads.heads;
        let mut contexts = Vec::new();
        let mut all_weights = Vec::new();
        for (head, score) in self.scores.iter().enumerate() {
            let part = |x: &Tensor, first| x.narrow(1, first + head * width, width)?.contiguous();
            let (q, k, v) = (part(&q, 0)?, part(kv, 0)?, part(kv, d)?);
            let over = KeysValues::new(&score.keys(&k, pass)?, &v, pass)?;
            let scores = score.of(&q, &over.keys, &scope.pairs, pass)?;
            let weights = Align::Global.weights(&scores, &q, scope, score.max_keys(), pass)?;
            let drop = scope.dropout(heads.drop.of(pass).of_head(head));
            let dropped = dropout(&weights, &drop, pass)?;
            contexts.push(mix(&dropped, &over.values, &scope.pairs, pass)?);
            all_weights.push(weights);
        }
        let context = Tensor::cat(&contexts, 1)?;
        Ok((linear(&context, &[&heads.out], pass)?, all_weights))
    }
}
