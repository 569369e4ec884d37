//! Recurrent encoders and decoders, in the order of their history: a decoder that starts from the encoder's
//! last state and has nothing else (Sutskever et al. 2014), one that sees that state at every step (Cho et al.
//! 2014), one that looks at the source before every step
//! (Bahdanau et al. 2015), and one that does so after it (Luong et al. 2015).
//!
//! n tokens of a packed batch, b sentences, k of them still going at a step; e wide embeddings, h wide
//! states; G h gates; S numbers in a state, which for an LSTM are its output and its cell.

mod alignment;
mod attention_config;
mod config;
mod cross_attention;
mod decoder;
mod decoding;
mod encoded;
mod encoder;
#[cfg(test)]
mod expectation;
mod footprint;
mod schedule;
mod start;
mod step_output;
mod summary;

pub use attention_config::{AttentionChoice, AttentionConfig, AttentionOrder};
pub(crate) use config::at_least_one_layer;
pub use config::{CellKind, ContextSteps, RecurrentConfig};

use attend_batch::{Packed, Source};
use attend_ops::{Cell, DropoutSite, Kernels, Linear, Pass, Weight};
use candle_core::{Result, Tensor};

use crate::decoding::Decoding as _;
use crate::embedding::{Tables, Widths, embed_words, tokens};
use crate::weights::Init;
use crate::{
    AttentionMap, DecoderState, Encode, Memory, Output, Place, Step, Train, Vocabularies, Weights,
};
pub(crate) use decoding::Decoding;
pub(crate) use encoded::Encoded;
pub(crate) use encoder::Encoder;
pub(crate) use start::Start;

pub struct Recurrent {
    weights: Weights,
    source: Weight,
    source_drop: DropoutSite,
    encoder: Encoder,
    decoding: Decoding,
}

impl Recurrent {
    pub(crate) fn new(
        config: &RecurrentConfig,
        vocabularies: Vocabularies,
        mut init: Init,
    ) -> Result<Self> {
        let tables = Tables::new(config.tie, vocabularies, Widths::from(config), &mut init)?;
        let (source, target) = tables.split();
        Ok(Self {
            source,
            source_drop: DropoutSite::new(config.dropout, "model.encoder.embed_tokens"),
            encoder: Encoder::new(config, config.d_embed, &mut init)?,
            decoding: Decoding::new(config, target, &mut init)?,
            weights: init.finish(),
        })
    }
}

impl From<&RecurrentConfig> for Widths {
    fn from(config: &RecurrentConfig) -> Self {
        Self {
            embedding: config.d_embed,
            output: config.d_hidden,
        }
    }
}

/// The input side of a layer's gates.
fn gates(cell: Cell, name: &str, inputs: usize, width: usize, init: &mut Init) -> Result<Linear> {
    let name = format!("{name}.input");
    // A forget gate that is open at first lets gradients through (Jozefowicz et al. 2015).
    let open = match cell {
        Cell::Lstm => width as u64..2 * width as u64,
        Cell::Gru => 0..0,
    };
    let bias = |i| if open.contains(&i) { 1.0 } else { 0.0 };
    init.affine(&name, inputs, cell.gates() * width, bias)
}

/// Their recurrent side. A GRU's has a bias of its own, since its candidate's is gated.
fn recurrent(
    cell: Cell,
    name: &str,
    inputs: usize,
    width: usize,
    init: &mut Init,
) -> Result<Linear> {
    let name = format!("{name}.recurrent");
    match cell {
        Cell::Lstm => init.matrix(&name, inputs, cell.gates() * width),
        Cell::Gru => init.linear(&name, inputs, cell.gates() * width),
    }
}

impl Encode for Recurrent {
    fn encode(&self, source: &Source, pass: &Pass) -> Result<Memory> {
        let source = tokens(source)?;
        let drop = self.source_drop.of_embeddings(&source.segments, pass);
        let x = embed_words(&self.source, &source.ids, &drop, pass)?;
        let (states, finals) = self.encoder.forward(&x, &source.segments, pass)?;
        let encoded = Encoded {
            states,
            segments: source.segments.clone(),
            finals,
        };
        Ok(encoded.into())
    }
}

impl Train for Recurrent {
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
        self.decoding
            .maps(&self.encode(source, &pass)?, target, &pass)
    }
}

impl Step for Recurrent {
    fn start_token(&self) -> u32 {
        self.decoding.start_token()
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

/// The map of its only attention.
fn cross_map(weights: Tensor) -> AttentionMap {
    AttentionMap {
        place: Place::Cross,
        layer: 0,
        head: 0,
        weights,
    }
}
