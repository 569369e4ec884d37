use attend_ops::{Body, Mask, MultiHead, Pass, Segments, Sublayer, dropout, linear, mix, stack};
use candle_core::{Result, Tensor, bail};

use crate::attention::{Align, Read, Scope, Score};
use crate::{AttentionMap, Memory, Place};

/// A sub-layer, and how each head of its attention scores.
pub(crate) struct Block {
    pub(crate) sublayer: Sublayer,
    /// Empty if it is no attention.
    pub(crate) scores: Vec<Score>,
}

/// What the blocks of a stack attend to.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) sentences: &'a Segments,
    pub(crate) memory: Option<&'a Memory>,
}

/// Layers of blocks, one after the other: `[n, d]` to `[n, d]`. Scaled dot products have a fused attention,
/// which shows no weights; the others, and all if there are `maps` to draw, go step by step.
pub(crate) fn run<'a>(
    x: &Tensor,
    layers: impl Iterator<Item = &'a [Block]> + Clone,
    scene: Scene,
    maps: Option<&mut Vec<AttentionMap>>,
    pass: &Pass,
) -> Result<Tensor> {
    let mut blocks = layers.clone().flatten();
    if maps.is_none() && blocks.all(Block::is_fused) {
        let memory = scene.memory.map(|memory| attend_ops::Source {
            states: &memory.states,
            segments: &memory.segments,
        });
        let sublayers = layers.flatten().map(|block| &block.sublayer);
        return stack(x, scene.sentences, memory, sublayers, pass);
    }
    let mut drawn = Vec::new();
    let mut x = x.clone();
    for (layer, blocks) in layers.enumerate() {
        for block in blocks {
            let (y, weights) = block.forward(&x, scene, pass)?;
            x = y;
            let heads = weights.into_iter().enumerate();
            drawn.extend(heads.map(|(head, weights)| AttentionMap {
                place: block.place(),
                layer,
                head,
                weights,
            }));
        }
    }
    if let Some(maps) = maps {
        maps.extend(drawn);
    }
    Ok(x)
}

impl Block {
    /// Whether there is a fused attention for it.
    pub(crate) fn is_fused(&self) -> bool {
        let fused = |score: &Score| matches!(score, Score::ScaledDot { .. });
        self.scores.iter().all(fused)
    }

    fn place(&self) -> Place {
        match &self.sublayer.body {
            Body::Itself(_, Mask::Full) => Place::Encoder,
            Body::Itself(_, Mask::Causal) => Place::Decoder,
            Body::Memory(_) | Body::FeedForward(_) => Place::Cross,
        }
    }

    /// Its output, and the weights of every head.
    fn forward(&self, x: &Tensor, scene: Scene, pass: &Pass) -> Result<(Tensor, Vec<Tensor>)> {
        let Sublayer { residual, body } = &self.sublayer;
        let mut weights = Vec::new();
        let y = residual.around(x, pass, |x| match body {
            Body::Itself(heads, mask) => {
                let scope = Scope::new(scene.sentences, scene.sentences, *mask);
                let kv = heads.read(x, pass)?;
                let (y, drawn) = self.attend(heads, x, &kv, &scope, pass)?;
                weights = drawn;
                Ok(y)
            }
            Body::Memory(heads) => {
                let Some(memory) = scene.memory else {
                    bail!("a block that attends to a memory needs one")
                };
                let scope = Scope::new(scene.sentences, &memory.segments, Mask::Full);
                let kv = heads.read(&memory.states, pass)?;
                let (y, drawn) = self.attend(heads, x, &kv, &scope, pass)?;
                weights = drawn;
                Ok(y)
            }
            Body::FeedForward(network) => network.forward(x, pass),
        })?;
        Ok((y, weights))
    }

    /// Queries made of x `[n, d]` to keys and values `[m, 2d]`, head by head: `[n, d]`, and the weights of
    /// every head.
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
        let mut drawn = Vec::new();
        for (head, score) in self.scores.iter().enumerate() {
            let part = |x: &Tensor, first| x.narrow(1, first + head * width, width)?.contiguous();
            let (q, k, v) = (part(&q, 0)?, part(kv, 0)?, part(kv, d)?);
            let read = Read::new(&score.read(&k, pass)?, &v, pass)?;
            let scores = score.of(&q, &read.keys, &scope.pairs, pass)?;
            let weights = Align::Global.weights(&scores, &q, scope, score.reach(), pass)?;
            let dropped = dropout(&weights, heads.drop.of(pass).at(head), pass)?;
            contexts.push(mix(&dropped, &read.values, &scope.pairs, pass)?);
            drawn.push(weights);
        }
        let context = Tensor::cat(&contexts, 1)?;
        Ok((linear(&context, &[&heads.out], pass)?, drawn))
    }
}
