//! The Transformer (Vaswani et al. 2017).
//!
//! n tokens of a packed batch, d model width, v vocabulary. Parameters have the names of Hugging
//! Face's MarianMT, and positions its layout, so that weights move between the two as they are.

mod block;
mod builder;
mod config;
mod decoder;
mod encoder;
mod footprint;
mod position;
mod scores;
mod state;

pub use config::{Activation, NormKind, TransformerConfig};
pub use position::sinusoids;
pub use scores::Scores;

use attend_batch::{Packed, Segments, Source};
use attend_ops::{DropoutSite, Kernels, Linear, Pass, Weight, embed, project};
use candle_core::{Result, Tensor};

use crate::cache::{Cache, CachedState, StepCached};
use crate::embedding::{Tables, Widths, tokens};
use crate::weights::Init;
use crate::{
    AttentionMap, DecoderState, Encode, Memory, Output, Step, Train, Vocabularies, Weights,
};
use decoder::Decoder;
use encoder::Encoder;
use position::Positions;
use state::FusedState;

pub struct Transformer {
    weights: Weights,
    source: Embedding,
    target: Embedding,
    encoder: Encoder,
    decoder: Decoder,
    /// The output matrix `[v, d]`, and a bias `[v]` if the config has one; the last row, padding, is never predicted.
    output: Linear,
    positions: Positions,
    d: usize,
}

struct Embedding {
    table: Weight,
    drop: DropoutSite,
}

impl Transformer {
    pub(crate) fn new(
        config: &TransformerConfig,
        vocabularies: Vocabularies,
        mut init: Init,
    ) -> Result<Self> {
        let d = config.d_model;
        let widths = Widths {
            embedding: d,
            output: d,
        };
        let Tables {
            source,
            target,
            mut output,
        } = Tables::new(config.tie, vocabularies, widths, &mut init)?;
        if config.output_bias {
            output.bias = Some(init.bias("final_logits_bias", vocabularies.target)?);
        }
        let embedding = |table, side: &str| Embedding {
            table,
            drop: DropoutSite::new(config.dropout, &format!("model.{side}.embed_tokens")),
        };
        Ok(Self {
            source: embedding(source, "encoder"),
            target: embedding(target, "decoder"),
            encoder: Encoder::new(config, &mut init)?,
            decoder: Decoder::new(config, &mut init)?,
            output,
            positions: Positions::new(d, init.device),
            d,
            weights: init.finish(),
        })
    }

    /// The encoder; adds its attention to `maps` if there are any.
    fn run_encoder(
        &self,
        source: &Source,
        maps: Option<&mut Vec<AttentionMap>>,
        pass: &Pass,
    ) -> Result<Memory> {
        let source = tokens(source)?;
        let positions = source.segments.positions();
        let x = self.embed(&self.source, &source.ids, &positions, pass)?;
        let states = self.encoder.forward(&x, &source.segments, maps, pass)?;
        Ok(Memory::new(states, source.segments.clone()))
    }

    /// The decoder under teacher forcing; adds its attention to `maps` if there are any.
    fn run_decoder(
        &self,
        memory: &Memory,
        target: &Packed,
        maps: Option<&mut Vec<AttentionMap>>,
        pass: &Pass,
    ) -> Result<Tensor> {
        let inputs = target.shifted(self.start_token());
        let positions = target.segments.positions();
        let x = self.embed(&self.target, &inputs, &positions, pass)?;
        self.decoder
            .forward(&x, &target.segments, memory, maps, pass)
    }

    /// Embeddings times √d, plus positions, then dropout (§3.4, §3.5, §5.4).
    fn embed(
        &self,
        embedding: &Embedding,
        ids: &[u32],
        positions: &[u32],
        pass: &Pass,
    ) -> Result<Tensor> {
        let longest = positions.iter().max().map_or(0, |&last| last as usize + 1);
        let places = self.positions.upto(longest)?;
        let dropout = embedding.drop.of(pass);
        embed(&embedding.table, ids, &places, positions, dropout, pass)
    }
}

impl Encode for Transformer {
    fn encode(&self, source: &Source, pass: &Pass) -> Result<Memory> {
        self.run_encoder(source, None, pass)
    }
}

impl Train for Transformer {
    fn weights(&self) -> &Weights {
        &self.weights
    }

    fn decode(&self, memory: &Memory, target: &Packed, pass: &Pass) -> Result<Output> {
        Ok(Output {
            hidden: self.run_decoder(memory, target, None, pass)?,
            penalty: None,
        })
    }

    fn output(&self) -> &Linear {
        &self.output
    }

    fn attention(
        &self,
        source: &Source,
        target: &Packed,
        kernels: Kernels,
    ) -> Result<Vec<AttentionMap>> {
        let pass = Pass::eval(kernels);
        let mut maps = Vec::new();
        let memory = self.run_encoder(source, Some(&mut maps), &pass)?;
        self.run_decoder(&memory, target, Some(&mut maps), &pass)?;
        Ok(maps)
    }
}

impl Step for Transformer {
    fn start_token(&self) -> u32 {
        (self.target.table.dims()[0] - 1) as u32
    }

    fn admits(&self, pass: &Pass) -> bool {
        pass.kernels == Kernels::Fused && self.decoder.is_fused()
    }

    fn start<'a>(
        &'a self,
        memory: &Memory,
        beams: usize,
        pass: &Pass,
    ) -> Result<Box<dyn DecoderState + 'a>> {
        if self.admits(pass) {
            let state = FusedState::new(self, memory, beams, pass)?;
            return Ok(Box::new(state));
        }
        let sentences = memory.segments.count();
        let source = self.decoder.source_keys_values(memory, pass)?;
        let (dtype, device) = (memory.states.dtype(), memory.states.device());
        let shape = (sentences * beams, Cache::FIRST_CAPACITY, 2 * self.d);
        let own = source.iter().map(|_| Tensor::zeros(shape, dtype, device));
        let cache = Cache {
            length: 0,
            rows: vec![beams; sentences],
            own: own.collect::<Result<_>>()?,
            source,
            segments: memory.segments.clone(),
        };
        Ok(Box::new(CachedState {
            model: self,
            cache,
            pass: *pass,
        }))
    }
}

impl StepCached for Transformer {
    fn step(
        &self,
        cache: &mut Cache,
        last: &[u32],
        maps: Option<&mut Vec<AttentionMap>>,
        pass: &Pass,
    ) -> Result<Tensor> {
        cache.reserve()?;
        let positions = vec![cache.length as u32; last.len()];
        let x = self.embed(&self.target, last, &positions, pass)?;
        let hidden = self.decoder.step(&x, cache, maps, pass)?;
        project(&hidden, &self.output, pass)
    }
}

/// One segment of one row for each of `rows` hypotheses.
fn singles(rows: usize) -> Segments {
    Segments::packed(std::iter::repeat_n(1, rows))
}
