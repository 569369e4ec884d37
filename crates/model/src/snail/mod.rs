//! SNAIL (Mishra, Rohaninejad, Chen and Abbeel 2017, "A Simple Neural Attentive Meta-Learner") as an encoder
//! and a decoder: causal convolutions that gather what is near, in turns with attention to what is far.
//! Every layer adds its output to the channels that it read, so that nothing is forgotten; and since
//! convolutions know what is how far, there are no positions.
//!
//! n tokens of a packed batch, d model width, c channels so far, D filters.

mod builder;
mod config;
mod convolution;
mod decoder;
mod encoder;
mod reader;

pub use config::SnailConfig;

use attend_ops::{DropoutSite, Loss, Pass, Path, cross_entropy, dropout, project};
use candle_core::{Device, Result, Tensor};

use crate::embedding::{Tables, embed_words};
use crate::params::Init;
use crate::{AttentionMap, Memory, Output, Packed, Params, Seq2Seq, State, Vocabularies};
use decoder::Decoder;
use encoder::Encoder;

pub struct Snail {
    params: Params,
    tables: Tables,
    encoder: Encoder,
    decoder: Decoder,
    source_drop: DropoutSite,
    target_drop: DropoutSite,
    hidden_drop: DropoutSite,
}

impl Snail {
    /// With fresh parameters, or zeros if there is no seed.
    pub fn new(
        config: &SnailConfig,
        vocabularies: Vocabularies,
        seed: Option<u64>,
        device: &Device,
    ) -> Result<Self> {
        let mut init = Init::new(seed, device);
        let widths = (config.d_model, config.d_model);
        let drop = |name: &str| DropoutSite::new(config.dropout, name);
        Ok(Self {
            tables: Tables::new(config.tie, vocabularies, widths, &mut init)?,
            encoder: Encoder::new(config, &mut init)?,
            decoder: Decoder::new(config, &mut init)?,
            source_drop: drop("model.encoder.embed_tokens"),
            target_drop: drop("model.decoder.embed_tokens"),
            hidden_drop: drop("model.decoder.output"),
            params: init.finish(),
        })
    }

    /// The encoder, and how it attended.
    fn read(&self, source: &Packed, pass: &Pass) -> Result<(Memory, Vec<AttentionMap>)> {
        let x = embed_words(&self.tables.source, &source.ids, self.source_drop, pass)?;
        let (states, maps) = self.encoder.forward(&x, &source.segments, pass)?;
        let memory = Memory {
            states,
            segments: source.segments.clone(),
            finals: Vec::new(),
        };
        Ok((memory, maps))
    }

    /// The decoder, with teacher forcing, and how it attended.
    fn write(
        &self,
        memory: &Memory,
        target: &Packed,
        pass: &Pass,
    ) -> Result<(Output, Vec<AttentionMap>)> {
        let inputs = target.shifted(self.start_token());
        let x = embed_words(&self.tables.target, &inputs, self.target_drop, pass)?;
        let segments = &target.segments;
        let (hidden, maps) = self.decoder.forward(&x, segments, memory, pass)?;
        let output = Output {
            hidden: dropout(&hidden, self.hidden_drop.of(pass), pass)?,
            alignment: None,
        };
        Ok((output, maps))
    }
}

impl Seq2Seq for Snail {
    fn params(&self) -> &Params {
        &self.params
    }

    fn encode(&self, source: &Packed, pass: &Pass) -> Result<Memory> {
        Ok(self.read(source, pass)?.0)
    }

    fn decode(&self, memory: &Memory, target: &Packed, pass: &Pass) -> Result<Output> {
        Ok(self.write(memory, target, pass)?.0)
    }

    fn loss(&self, output: &Output, target: &Packed, smoothing: f32, pass: &Pass) -> Result<Loss> {
        let table = &self.tables.output;
        cross_entropy(&output.hidden, table, &target.ids, smoothing, pass)
    }

    fn attention(&self, source: &Packed, target: &Packed, path: Path) -> Result<Vec<AttentionMap>> {
        let pass = Pass::eval(path);
        let (memory, mut maps) = self.read(source, &pass)?;
        maps.extend(self.write(&memory, target, &pass)?.1);
        Ok(maps)
    }

    fn start(&self, memory: &Memory, beams: usize, pass: &Pass) -> Result<State> {
        let sentences = memory.segments.count();
        let (dtype, device) = (memory.states.dtype(), memory.states.device());
        let widths = self.decoder.widths()?.into_iter();
        let room = |width| (sentences * beams, State::FIRST_ROOM, width);
        let own = widths.map(|width| Tensor::zeros(room(width), dtype, device));
        Ok(State {
            length: 0,
            rows: vec![beams; sentences],
            own: own.collect::<Result<_>>()?,
            source: self.decoder.read(memory, pass)?,
            segments: memory.segments.clone(),
        })
    }

    fn step(&self, state: &mut State, last: &[u32], pass: &Pass) -> Result<Tensor> {
        state.reserve()?;
        let x = embed_words(&self.tables.target, last, self.target_drop, pass)?;
        let hidden = self.decoder.step(&x, state, pass)?;
        state.length += 1;
        project(&hidden, &self.tables.output, pass)
    }

    fn start_token(&self) -> u32 {
        (self.tables.target.value().dims()[0] - 1) as u32
    }
}
