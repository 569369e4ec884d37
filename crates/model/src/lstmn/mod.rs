//! The Long Short-Term Memory-Network (Cheng, Dong and Lapata 2016, "Long Short-Term Memory-Networks for Machine
//! Reading") as an encoder and a decoder: an LSTM that keeps all of its states on two tapes, one of outputs and
//! one of memories, and attends to them at every step. `attend_ops::tapes` has the equations.
//!
//! Unlike in the paper, gates have biases. Layers are stacked: each reads the outputs of the one below.
//!
//! n tokens of a packed batch, m of them in the source, e wide embeddings, h wide states.

mod config;
mod decoder;
mod encoder;
mod footprint;
mod layer;

pub use config::{FusionKind, LstmnConfig};

use attend_batch::{Packed, Source};
use attend_ops::{DropoutSite, EmbeddingDropout, Kernels, Linear, Pass, dropout, project};
use candle_core::{Result, Tensor, bail};

use crate::cache::{Cache, CachedState, StepCached};
use crate::embedding::{Tables, Widths, embed_words, tokens};
use crate::weights::Init;
use crate::{
    AttentionMap, DecoderState, Encode, Memory, Output, Place, Step, Train, Vocabularies, Weights,
};
use decoder::Decoder;
use encoder::Encoder;

pub struct Lstmn {
    weights: Weights,
    tables: Tables,
    encoder: Encoder,
    decoder: Decoder,
    /// h
    width: usize,
    source_drop: DropoutSite,
    target_drop: DropoutSite,
    hidden_drop: DropoutSite,
}

/// The encoder's tapes, outputs and memories side by side, `[m, 2h]`: the part of a [`Memory`] that only this
/// family understands.
struct EncoderTapes(Tensor);

impl Lstmn {
    pub(crate) fn new(
        config: &LstmnConfig,
        vocabularies: Vocabularies,
        mut init: Init,
    ) -> Result<Self> {
        let widths = Widths {
            embedding: config.d_embed,
            output: config.d_hidden,
        };
        let drop = |name: &str| DropoutSite::new(config.dropout, name);
        Ok(Self {
            tables: Tables::new(config.tie, vocabularies, widths, &mut init)?,
            encoder: Encoder::new(config, &mut init)?,
            decoder: Decoder::new(config, &mut init)?,
            width: config.d_hidden,
            source_drop: drop("model.encoder.embed_tokens"),
            target_drop: drop("model.decoder.embed_tokens"),
            hidden_drop: drop("model.decoder.output"),
            weights: init.finish(),
        })
    }

    /// The encoder, and its attention.
    fn run_encoder(&self, source: &Source, pass: &Pass) -> Result<(Memory, Vec<AttentionMap>)> {
        let source = tokens(source)?;
        let drop = self.source_drop.of_embeddings(&source.segments, pass);
        let x = embed_words(&self.tables.source, &source.ids, &drop, pass)?;
        let (tapes, maps) = self.encoder.forward(&x, &source.segments, pass)?;
        let states = tapes.narrow(1, 0, self.width)?.contiguous()?;
        let memory = Memory::new(states, source.segments.clone());
        Ok((memory.with_private(EncoderTapes(tapes)), maps))
    }

    /// The decoder under teacher forcing, and its attention.
    fn run_decoder(
        &self,
        memory: &Memory,
        target: &Packed,
        pass: &Pass,
    ) -> Result<(Tensor, Vec<AttentionMap>)> {
        let inputs = target.shifted(self.start_token());
        let segments = &target.segments;
        let drop = self.target_drop.of_embeddings(segments, pass);
        let x = embed_words(&self.tables.target, &inputs, &drop, pass)?;
        let source = self.decoder.source(memory, tapes(memory)?, pass)?;
        let (hidden, maps) = self.decoder.forward(&x, segments, &source, pass)?;
        let drop = self.hidden_drop.of_rows(segments, pass);
        Ok((dropout(&hidden, &drop, pass)?, maps))
    }
}

/// The encoder's tapes; an error if the memory was made by a model of another family.
fn tapes(memory: &Memory) -> Result<&Tensor> {
    match memory.private() {
        Some(EncoderTapes(tapes)) => Ok(tapes),
        None => bail!("the memory is not of an LSTMN"),
    }
}

/// The map of a layer's only head.
fn own_map(place: Place, layer: usize, weights: Tensor) -> AttentionMap {
    AttentionMap {
        place,
        layer,
        head: 0,
        weights,
    }
}

impl Encode for Lstmn {
    fn encode(&self, source: &Source, pass: &Pass) -> Result<Memory> {
        Ok(self.run_encoder(source, pass)?.0)
    }
}

impl Train for Lstmn {
    fn weights(&self) -> &Weights {
        &self.weights
    }

    fn decode(&self, memory: &Memory, target: &Packed, pass: &Pass) -> Result<Output> {
        Ok(Output {
            hidden: self.run_decoder(memory, target, pass)?.0,
            penalty: None,
        })
    }

    fn output(&self) -> &Linear {
        &self.tables.output
    }

    fn attention(
        &self,
        source: &Source,
        target: &Packed,
        kernels: Kernels,
    ) -> Result<Vec<AttentionMap>> {
        let pass = Pass::eval(kernels);
        let (memory, mut maps) = self.run_encoder(source, &pass)?;
        maps.extend(self.run_decoder(&memory, target, &pass)?.1);
        Ok(maps)
    }
}

impl Step for Lstmn {
    fn start_token(&self) -> u32 {
        (self.tables.target.dims()[0] - 1) as u32
    }

    fn start<'a>(
        &'a self,
        memory: &Memory,
        beams: usize,
        pass: &Pass,
    ) -> Result<Box<dyn DecoderState + 'a>> {
        let sentences = memory.segments.count();
        let source = self.decoder.source(memory, tapes(memory)?, pass)?;
        let cache = Cache {
            length: 0,
            rows: vec![beams; sentences],
            own: self
                .decoder
                .start(sentences * beams, memory.states.device())?,
            source: vec![source.keys.detach(), source.values.detach()],
            segments: memory.segments.clone(),
        };
        Ok(Box::new(CachedState {
            model: self,
            cache,
            pass: *pass,
        }))
    }
}

impl StepCached for Lstmn {
    fn step(
        &self,
        cache: &mut Cache,
        last: &[u32],
        maps: Option<&mut Vec<AttentionMap>>,
        pass: &Pass,
    ) -> Result<Tensor> {
        cache.reserve()?;
        let x = embed_words(&self.tables.target, last, &EmbeddingDropout::NONE, pass)?;
        let hidden = self.decoder.step(&x, cache, maps, pass)?;
        project(&hidden, &self.tables.output, pass)
    }
}
