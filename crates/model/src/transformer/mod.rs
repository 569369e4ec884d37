//! The Transformer (Vaswani et al. 2017).
//!
//! n tokens of a packed batch, d model width, v vocabulary. Parameters have the names of Hugging
//! Face's MarianMT, and positions its layout, so that weights move between the two as they are.

mod block;
mod builder;
mod config;
mod decoder;
mod encoder;
mod position;
mod scores;

pub use config::{Activation, Norm, TransformerConfig};
pub use scores::Scores;

use attend_ops::{DropoutSite, Loss, Param, Pass, Path, Segments, cross_entropy, embed, project};
use candle_core::{Device, Result, Tensor};

use crate::embedding::Tables;
use crate::params::Init;
use crate::{AttentionMap, Memory, Output, Packed, Params, Seq2Seq, State, Vocabularies};
use decoder::Decoder;
use encoder::Encoder;
use position::Positions;

pub struct Transformer {
    params: Params,
    source: Embedding,
    target: Embedding,
    encoder: Encoder,
    decoder: Decoder,
    /// The output matrix `[v, d]`; the last row, padding, is never predicted.
    output: Param,
    positions: Positions,
    d: usize,
}

struct Embedding {
    table: Param,
    drop: DropoutSite,
}

impl Transformer {
    /// With fresh parameters, or zeros if there is no seed.
    pub fn new(
        config: &TransformerConfig,
        vocabularies: Vocabularies,
        seed: Option<u64>,
        device: &Device,
    ) -> Result<Self> {
        let d = config.d_model;
        let mut init = Init::new(seed, device);
        let Tables {
            source,
            target,
            output,
        } = Tables::new(config.tie, vocabularies, (d, d), &mut init)?;
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
            positions: Positions::new(d, device),
            d,
            params: init.finish(),
        })
    }

    /// The encoder; adds to `maps` if there are any.
    fn read(
        &self,
        source: &Packed,
        maps: Option<&mut Vec<AttentionMap>>,
        pass: &Pass,
    ) -> Result<Memory> {
        let positions = source.segments.positions();
        let x = self.embed(&self.source, &source.ids, &positions, pass)?;
        Ok(Memory {
            states: self.encoder.forward(&x, &source.segments, maps, pass)?,
            segments: source.segments.clone(),
            finals: Vec::new(),
        })
    }

    /// The decoder, with teacher forcing.
    fn write(
        &self,
        memory: &Memory,
        target: &Packed,
        maps: Option<&mut Vec<AttentionMap>>,
        pass: &Pass,
    ) -> Result<Output> {
        let inputs = target.shifted(self.start_token());
        let positions = target.segments.positions();
        let x = self.embed(&self.target, &inputs, &positions, pass)?;
        let segments = &target.segments;
        Ok(Output {
            hidden: self.decoder.forward(&x, segments, memory, maps, pass)?,
            alignment: None,
        })
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

impl Seq2Seq for Transformer {
    fn params(&self) -> &Params {
        &self.params
    }

    fn encode(&self, source: &Packed, pass: &Pass) -> Result<Memory> {
        self.read(source, None, pass)
    }

    fn decode(&self, memory: &Memory, target: &Packed, pass: &Pass) -> Result<Output> {
        self.write(memory, target, None, pass)
    }

    fn loss(&self, output: &Output, target: &Packed, smoothing: f32, pass: &Pass) -> Result<Loss> {
        let Output { hidden, .. } = output;
        cross_entropy(hidden, &self.output, &target.ids, smoothing, pass)
    }

    fn attention(&self, source: &Packed, target: &Packed, path: Path) -> Result<Vec<AttentionMap>> {
        let pass = Pass::eval(path);
        let mut maps = Vec::new();
        let memory = self.read(source, Some(&mut maps), &pass)?;
        self.write(&memory, target, Some(&mut maps), &pass)?;
        Ok(maps)
    }

    fn start(&self, memory: &Memory, beams: usize, pass: &Pass) -> Result<State> {
        let sentences = memory.segments.count();
        let source = self.decoder.read_memory(memory, pass)?;
        let (dtype, device) = (memory.states.dtype(), memory.states.device());
        let room = (sentences * beams, State::FIRST_ROOM, 2 * self.d);
        let own = source.iter().map(|_| Tensor::zeros(room, dtype, device));
        Ok(State {
            length: 0,
            rows: vec![beams; sentences],
            own: own.collect::<Result<_>>()?,
            source,
            segments: memory.segments.clone(),
        })
    }

    fn step(&self, state: &mut State, last: &[u32], pass: &Pass) -> Result<Tensor> {
        state.reserve()?;
        let positions = vec![state.length as u32; last.len()];
        let x = self.embed(&self.target, last, &positions, pass)?;
        let hidden = self.decoder.step(&x, state, pass)?;
        state.length += 1;
        project(&hidden, &self.output, pass)
    }

    fn start_token(&self) -> u32 {
        (self.target.table.value().dims()[0] - 1) as u32
    }
}

/// One segment of one row for each of `rows` hypotheses.
fn singles(rows: usize) -> Segments {
    Segments::packed(std::iter::repeat_n(1, rows))
}
