//! SNAIL (Mishra, Rohaninejad, Chen and Abbeel 2017, "A Simple Neural Attentive Meta-Learner") as an encoder
//! and a decoder: causal convolutions that gather what is near, in turns with attention to what is far.
//! Every layer adds its output to the channels that it read, so that nothing is forgotten; and since
//! convolutions know what is how far, there are no positions.
//!
//! n tokens of a packed batch, d model width, c channels so far, D filters.

mod attention_block;
mod builder;
mod config;
mod convolution;
mod decoder;
mod encoder;
mod footprint;

pub use config::SnailConfig;

use attend_batch::{Packed, Source};
use attend_ops::{DropoutSite, EmbeddingDropout, Kernels, Linear, Pass, dropout, project};
use candle_core::{Result, Tensor};

use crate::cache::{Cache, CachedState, StepCached};
use crate::embedding::{Tables, Widths, embed_words, tokens};
use crate::weights::Init;
use crate::{
    AttentionMap, DecoderState, Encode, Memory, Output, Step, Train, Vocabularies, Weights,
};
use decoder::Decoder;
use encoder::Encoder;

pub struct Snail {
    weights: Weights,
    tables: Tables,
    encoder: Encoder,
    decoder: Decoder,
    source_drop: DropoutSite,
    target_drop: DropoutSite,
    hidden_drop: DropoutSite,
}

impl Snail {
    pub(crate) fn new(
        config: &SnailConfig,
        vocabularies: Vocabularies,
        mut init: Init,
    ) -> Result<Self> {
        let widths = Widths {
            embedding: config.d_model,
            output: config.d_model,
        };
        let drop = |name: &str| DropoutSite::new(config.dropout, name);
        Ok(Self {
            tables: Tables::new(config.tie, vocabularies, widths, &mut init)?,
            encoder: Encoder::new(config, &mut init)?,
            decoder: Decoder::new(config, &mut init)?,
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
        let (states, maps) = self.encoder.forward(&x, &source.segments, pass)?;
        Ok((Memory::new(states, source.segments.clone()), maps))
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
        let (hidden, maps) = self.decoder.forward(&x, segments, memory, pass)?;
        let drop = self.hidden_drop.of_rows(segments, pass);
        Ok((dropout(&hidden, &drop, pass)?, maps))
    }
}

impl Encode for Snail {
    fn encode(&self, source: &Source, pass: &Pass) -> Result<Memory> {
        Ok(self.run_encoder(source, pass)?.0)
    }
}

impl Train for Snail {
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

impl Step for Snail {
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
        let (dtype, device) = (memory.states.dtype(), memory.states.device());
        let widths = self.decoder.widths()?.into_iter();
        let shape = |width| (sentences * beams, Cache::FIRST_CAPACITY, width);
        let own = widths.map(|width| Tensor::zeros(shape(width), dtype, device));
        let cache = Cache {
            length: 0,
            rows: vec![beams; sentences],
            own: own.collect::<Result<_>>()?,
            source: self.decoder.source_keys_values(memory, pass)?,
            segments: memory.segments.clone(),
        };
        Ok(Box::new(CachedState {
            model: self,
            cache,
            pass: *pass,
        }))
    }
}

impl StepCached for Snail {
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
