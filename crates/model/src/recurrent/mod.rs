//! Recurrent encoders and decoders, in the order of their history: a decoder that starts from the encoder's
//! last state and has nothing else (Sutskever et al. 2014), one that looks at the source before every step
//! (Bahdanau et al. 2015), and one that does so after it (Luong et al. 2015).
//!
//! n tokens of a packed batch, b sentences, k of them still going at a step; e wide embeddings, h wide
//! states; G h gates; S numbers in a state, which for an LSTM are its output and its cell.

mod attention_config;
mod config;
mod decoder;
mod encoder;
#[cfg(test)]
mod expectation;
mod looking;
mod schedule;
mod stepped;

pub use attention_config::{AttentionChoice, AttentionConfig, Order};
pub use config::{CellKind, RecurrentConfig};

use attend_ops::{
    Cell, DropoutSite, Linear, Loss, Pass, Path, Segments, cross_entropy, dropout, project,
};
use candle_core::{DType, Device, Result, Tensor};

use crate::attention::{Context, Hard, Read, Scope, doubly_stochastic};
use crate::embedding::{Tables, embed_words};
use crate::params::Init;
use crate::{AttentionMap, Memory, Output, Packed, Params, Place, Seq2Seq, State, Vocabularies};
use decoder::Decoder;
use encoder::Encoder;

pub struct Recurrent {
    params: Params,
    tables: Tables,
    encoder: Encoder,
    decoder: Decoder,
    /// λ of [`doubly_stochastic`].
    doubly_stochastic: f32,
    source_drop: DropoutSite,
    target_drop: DropoutSite,
    hidden_drop: DropoutSite,
}

impl Recurrent {
    /// With fresh parameters, or zeros if there is no seed.
    pub fn new(
        config: &RecurrentConfig,
        vocabularies: Vocabularies,
        seed: Option<u64>,
        device: &Device,
    ) -> Result<Self> {
        let mut init = Init::new(seed, device);
        let widths = (config.d_embed, config.d_hidden);
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
            params: init.finish(),
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

impl Seq2Seq for Recurrent {
    fn params(&self) -> &Params {
        &self.params
    }

    fn encode(&self, source: &Packed, pass: &Pass) -> Result<Memory> {
        let x = embed_words(&self.tables.source, &source.ids, self.source_drop, pass)?;
        let (states, finals) = self.encoder.forward(&x, &source.segments, pass)?;
        Ok(Memory {
            states,
            segments: source.segments.clone(),
            finals,
        })
    }

    fn decode(&self, memory: &Memory, target: &Packed, pass: &Pass) -> Result<Output> {
        let inputs = target.shifted(self.start_token());
        let embed = |order: Option<&[u32]>| {
            let ids = match order {
                None => inputs,
                Some(rows) => rows.iter().map(|&row| inputs[row as usize]).collect(),
            };
            embed_words(&self.tables.target, &ids, self.target_drop, pass)
        };
        let output = self
            .decoder
            .forward(memory, &target.segments, embed, pass)?;
        let hidden = dropout(&output.hidden, self.hidden_drop.of(pass), pass)?;
        Ok(Output { hidden, ..output })
    }

    fn loss(&self, output: &Output, target: &Packed, smoothing: f32, pass: &Pass) -> Result<Loss> {
        let table = &self.tables.output;
        let loss = cross_entropy(&output.hidden, table, &target.ids, smoothing, pass)?;
        let Some(alignment) = output.alignment.as_ref().filter(|_| pass.trains()) else {
            return Ok(loss);
        };
        let mut extra = Tensor::zeros((), DType::F32, output.hidden.device())?;
        if self.doubly_stochastic > 0.0 {
            let (queries, keys) = (&target.segments, &alignment.keys);
            let lambda = self.doubly_stochastic;
            extra = (extra + doubly_stochastic(&alignment.weights, queries, keys, lambda)?)?;
        }
        if let (Some(hard), Some(choice)) = (self.hard(), &alignment.choice) {
            extra = (extra + hard.reinforce(choice, &loss.each, &target.segments)?)?;
        }
        Ok(loss.with(extra))
    }

    fn attention(&self, source: &Packed, target: &Packed, path: Path) -> Result<Vec<AttentionMap>> {
        let pass = Pass::eval(path);
        let output = self.decode(&self.encode(source, &pass)?, target, &pass)?;
        let map = output.alignment.map(|alignment| AttentionMap {
            place: Place::Cross,
            layer: 0,
            head: 0,
            weights: alignment
                .choice
                .map_or(alignment.weights, |choice| choice.taken),
        });
        Ok(map.into_iter().collect())
    }

    fn start(&self, memory: &Memory, beams: usize, pass: &Pass) -> Result<State> {
        let sentences = memory.segments.count();
        let rows = (0..sentences as u32).flat_map(|i| std::iter::repeat_n(i, beams));
        let rows = Tensor::new(rows.collect::<Vec<_>>(), memory.states.device())?;
        let own = self.decoder.start(memory)?;
        let own = own.iter().map(|own| own.detach().index_select(&rows, 0));
        let source = self.decoder.read(memory, pass)?;
        Ok(State {
            length: 0,
            rows: vec![beams; sentences],
            own: own.collect::<Result<_>>()?,
            source: source.iter().map(Tensor::detach).collect(),
            segments: memory.segments.clone(),
        })
    }

    fn step(&self, state: &mut State, last: &[u32], pass: &Pass) -> Result<Tensor> {
        let x = embed_words(&self.tables.target, last, self.target_drop, pass)?;
        let input = self.decoder.input(&x, pass)?;
        let read = match &state.source[..] {
            [keys, values] => Some(Read::new(keys, values, pass)?),
            _ => None,
        };
        let queries = Segments::packed(state.rows.iter().copied());
        let scope = Scope::at(state.length, queries, &state.segments);
        let input = (&input, 0..last.len());
        let own = &mut state.own;
        let stepped = self.decoder.step(own, input, read.as_ref(), &scope, pass)?;
        let hidden = self.decoder.read_out(&stepped, &x, pass)?;
        own.iter_mut().for_each(|own| *own = own.detach());
        state.length += 1;
        project(&hidden, &self.tables.output, pass)
    }

    fn start_token(&self) -> u32 {
        (self.tables.target.value().dims()[0] - 1) as u32
    }
}
