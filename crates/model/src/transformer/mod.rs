//! The Transformer (Vaswani et al. 2017).
//!
//! n tokens of a packed batch, d model width, v vocabulary. Parameters have the names of Hugging
//! Face's MarianMT, and positions its layout, so that weights move between the two as they are.

mod block;
mod builder;
mod config;
mod decoder;
mod decoding;
mod embedding;
mod encoder;
mod footprint;
mod layer_dropout;
mod position;
mod scores;
mod state;

pub use config::{Activation, NormKind, TransformerConfig};
pub(crate) use position::Positions;
pub use position::sinusoids;
pub use scores::Scores;

use attend_batch::{Packed, Segments, Source};
use attend_ops::{Kernels, Linear, Pass};
use candle_core::Result;

use crate::decoding::Decoding as _;
use crate::embedding::{Tables, Widths, tokens};
use crate::weights::Init;
use crate::{
    AttentionMap, DecoderState, Encode, Memory, Output, Step, Train, Vocabularies, Weights,
};
pub(crate) use decoding::Decoding;
use embedding::Embedding;
pub(crate) use encoder::Encoder;

pub struct Transformer {
    weights: Weights,
    source: Embedding,
    encoder: Encoder,
    decoding: Decoding,
}

impl Transformer {
    pub(crate) fn new(
        config: &TransformerConfig,
        vocabularies: Vocabularies,
        mut init: Init,
    ) -> Result<Self> {
        let tables = Tables::new(config.tie, vocabularies, Widths::from(config), &mut init)?;
        let (source, target) = tables.split();
        Ok(Self {
            source: Embedding::new(source, "encoder", config, &init),
            encoder: Encoder::new(config, &mut init)?,
            decoding: Decoding::new(config, target, &mut init)?,
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
        let x = self.source.embed(&source.ids, &source.segments, pass)?;
        let states = self.encoder.forward(&x, &source.segments, maps, pass)?;
        Ok(Memory::new(states, source.segments.clone()))
    }
}

impl From<&TransformerConfig> for Widths {
    fn from(config: &TransformerConfig) -> Self {
        Self {
            embedding: config.d_model,
            output: config.d_model,
        }
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
        self.decoding.decode(memory, target, pass)
    }

    fn output(&self) -> &Linear {
        self.decoding.output()
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
        maps.extend(self.decoding.maps(&memory, target, &pass)?);
        Ok(maps)
    }
}

impl Step for Transformer {
    fn start_token(&self) -> u32 {
        self.decoding.start_token()
    }

    fn admits(&self, pass: &Pass) -> bool {
        self.decoding.admits(pass)
    }

    fn start<'a>(
        &'a self,
        memory: &Memory,
        beams: usize,
        pass: &Pass,
    ) -> Result<Box<dyn DecoderState + 'a>> {
        self.decoding.start(memory, beams, pass)
    }
}

/// One segment of one row for each of `rows` hypotheses.
fn singles(rows: usize) -> Segments {
    Segments::packed(std::iter::repeat_n(1, rows))
}
