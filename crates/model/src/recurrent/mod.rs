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
mod encoded;
mod encoder;
#[cfg(test)]
mod expectation;
mod footprint;
mod schedule;
mod step_output;
mod summary;

pub use attention_config::{AttentionChoice, AttentionConfig, AttentionOrder};
pub use config::{CellKind, ContextSteps, RecurrentConfig};

use attend_batch::{Packed, Source};
use attend_ops::{Cell, DropoutSite, Kernels, Linear, Pass, dropout, project};
use candle_core::{Result, Tensor};

use crate::attention::{Context, Hard, KeysValues, Scope};
use crate::cache::{Cache, CachedState, StepCached};
use crate::embedding::{Tables, Widths, embed_words, tokens};
use crate::weights::Init;
use crate::{
    AttentionMap, DecoderState, Encode, Memory, Output, Penalty, Place, Step, Train, Vocabularies,
    Weights,
};
use alignment::{Alignment, AttentionPenalty};
use decoder::{Decoded, Decoder, StepInput};
use encoded::Encoded;
use encoder::Encoder;

pub struct Recurrent {
    weights: Weights,
    tables: Tables,
    encoder: Encoder,
    decoder: Decoder,
    /// λ of the doubly stochastic penalty.
    doubly_stochastic: f32,
    source_drop: DropoutSite,
    target_drop: DropoutSite,
    hidden_drop: DropoutSite,
}

impl Recurrent {
    pub(crate) fn new(
        config: &RecurrentConfig,
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
            doubly_stochastic: match &config.attention {
                AttentionChoice::None => 0.0,
                AttentionChoice::Some(attention) => attention.doubly_stochastic,
            },
            source_drop: drop("model.encoder.embed_tokens"),
            target_drop: drop("model.decoder.embed_tokens"),
            hidden_drop: drop("model.decoder.output"),
            weights: init.finish(),
        })
    }

    /// The context, if it is a hard one.
    fn hard(&self) -> Option<&Hard> {
        match &self.decoder.attention.as_ref()?.attention.context {
            Context::Hard(hard) => Some(hard),
            Context::Soft => None,
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

impl Recurrent {
    /// Teacher forcing.
    fn run_decoder(&self, encoded: &Encoded, target: &Packed, pass: &Pass) -> Result<Decoded> {
        let inputs = target.shifted(self.start_token());
        let embed = |order: Option<&[u32]>| {
            let ids = match order {
                None => inputs,
                Some(rows) => rows.iter().map(|&row| inputs[row as usize]).collect(),
            };
            embed_words(&self.tables.target, &ids, self.target_drop, pass)
        };
        let segments = &target.segments;
        let decoded = self.decoder.forward(encoded, segments, embed, pass)?;
        let hidden = dropout(&decoded.hidden, self.hidden_drop.of(pass), pass)?;
        Ok(Decoded { hidden, ..decoded })
    }

    /// What is minimised in addition to the cross-entropy, if anything.
    fn penalty(&self, alignment: Alignment) -> Option<Box<dyn Penalty>> {
        let hard = self.hard().cloned();
        if hard.is_none() && self.doubly_stochastic == 0.0 {
            return None;
        }
        Some(Box::new(AttentionPenalty {
            alignment,
            doubly_stochastic: self.doubly_stochastic,
            hard,
        }))
    }
}

impl Encode for Recurrent {
    fn encode(&self, source: &Source, pass: &Pass) -> Result<Memory> {
        let source = tokens(source)?;
        let x = embed_words(&self.tables.source, &source.ids, self.source_drop, pass)?;
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
        let decoded = self.run_decoder(&Encoded::from_memory(memory)?, target, pass)?;
        Ok(Output {
            hidden: decoded.hidden,
            penalty: decoded.alignment.and_then(|it| self.penalty(it)),
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
        let encoded = Encoded::from_memory(&self.encode(source, &pass)?)?;
        let alignment = self.run_decoder(&encoded, target, &pass)?.alignment;
        let weights = alignment.map(|it| it.choice.map_or(it.weights, |choice| choice.taken));
        Ok(weights.map(cross_map).into_iter().collect())
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

impl Step for Recurrent {
    fn start_token(&self) -> u32 {
        (self.tables.target.dims()[0] - 1) as u32
    }

    fn start<'a>(
        &'a self,
        memory: &Memory,
        beams: usize,
        pass: &Pass,
    ) -> Result<Box<dyn DecoderState + 'a>> {
        let encoded = Encoded::from_memory(memory)?;
        let sentences = encoded.segments.count();
        let rows = (0..sentences as u32).flat_map(|i| std::iter::repeat_n(i, beams));
        let rows = Tensor::new(rows.collect::<Vec<_>>(), encoded.states.device())?;
        let own = self.decoder.start(&encoded, pass)?;
        let own = own.iter().map(|own| own.detach().index_select(&rows, 0));
        let source = self.decoder.source_keys_values(&encoded, pass)?;
        let cache = Cache {
            length: 0,
            rows: vec![beams; sentences],
            own: own.collect::<Result<_>>()?,
            source: source.iter().map(Tensor::detach).collect(),
            segments: encoded.segments,
        };
        Ok(Box::new(CachedState {
            model: self,
            cache,
            pass: *pass,
        }))
    }
}

impl StepCached for Recurrent {
    fn step(
        &self,
        cache: &mut Cache,
        last: &[u32],
        maps: Option<&mut Vec<AttentionMap>>,
        pass: &Pass,
    ) -> Result<Tensor> {
        let x = embed_words(&self.tables.target, last, self.target_drop, pass)?;
        let input = StepInput {
            gates: &self.decoder.step_input(&x, &cache.own, pass)?,
            rows: 0..last.len(),
        };
        let over = match &cache.source[..] {
            [keys, values] => Some(KeysValues::new(keys, values, pass)?),
            _ => None,
        };
        let scope = Scope::at(cache.length, cache.rows_by_sentence(), &cache.segments);
        let own = &mut cache.own;
        let step = self.decoder.step(own, input, over.as_ref(), &scope, pass)?;
        let hidden = self.decoder.readout(&step, &x, pass)?;
        own.iter_mut().for_each(|own| *own = own.detach());
        if let (Some(maps), Some(attended)) = (maps, step.attended) {
            let choice = attended.choice.map(|choice| choice.taken);
            maps.push(cross_map(choice.unwrap_or(attended.weights)));
        }
        project(&hidden, &self.tables.output, pass)
    }
}
