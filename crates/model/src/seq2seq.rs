//! The seam between models and everything that uses them: what encodes ([`Encode`]), what trains ([`Train`]) and
//! what steps ([`Step`]).
//!
//! Search and serving need only what encodes and steps. A model that trains does all three ([`Seq2Seq`]). Each
//! can be implemented outside this crate: an ensemble, for example, is something that encodes and steps.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use attend_batch::{Packed, Segments, Source, SourceShape};
use attend_ops::{
    Consistency, Kernels, Linear, Loss, Pass, consistent_cross_entropy, cross_entropy,
};
use candle_core::{Result, Tensor, bail};

use crate::Weights;

/// A whole model: it encodes, trains and steps.
pub trait Seq2Seq: Train + Step {}

impl<M: Train + Step> Seq2Seq for M {}

/// What encodes.
pub trait Encode: Send + Sync {
    /// What its sources are.
    fn source(&self) -> SourceShape {
        SourceShape::Text
    }

    /// The rows and columns of the regions that it makes of a picture; `None` if it does not read pictures.
    fn regions(&self) -> Option<(usize, usize)> {
        None
    }

    /// It is an error to give features to a model that reads token ids, and the other way round.
    fn encode(&self, source: &Source, pass: &Pass) -> Result<Memory>;
}

/// What trains: teacher forcing and the loss.
pub trait Train: Encode {
    fn weights(&self) -> &Weights;

    /// Teacher forcing: the hidden states that predict each position of `target`.
    fn decode(&self, memory: &Memory, target: &Packed, pass: &Pass) -> Result<Output>;

    /// The output matrix `[v, d]` and, in some models, a bias `[v]`. Its last row is padding, which is never
    /// predicted.
    fn output(&self) -> &Linear;

    /// Every attention of one sentence pair under teacher forcing; none if the model has no attention.
    fn attention(
        &self,
        source: &Source,
        target: &Packed,
        kernels: Kernels,
    ) -> Result<Vec<AttentionMap>>;

    /// The label-smoothed cross-entropy, summed over tokens, and in training the model's penalty. The fused
    /// kernels never hold the `[n, v]` logits whole; the composed ones do.
    fn loss(&self, output: &Output, target: &Packed, smoothing: f32, pass: &Pass) -> Result<Loss> {
        let loss = cross_entropy(&output.hidden, self.output(), &target.ids, smoothing, pass)?;
        match &output.penalty {
            Some(penalty) if pass.trains() => {
                let penalty = penalty.of(&loss.each, &target.segments)?;
                Ok(loss.with(penalty))
            }
            _ => Ok(loss),
        }
    }

    /// The loss of two passes over the same batch that are to predict alike. The penalties of both are weighted as
    /// their cross-entropies are. For training.
    fn consistent_loss(
        &self,
        [first, second]: [&Output; 2],
        target: &Packed,
        smoothing: f32,
        consistency: Consistency,
        pass: &Pass,
    ) -> Result<Loss> {
        let (output, ids) = (self.output(), &target.ids);
        let hidden = [&first.hidden, &second.hidden];
        let (loss, losses_of_second) =
            consistent_cross_entropy(hidden, output, ids, smoothing, consistency, pass)?;
        let losses = [&loss.each, &losses_of_second];
        let passes = [first, second].into_iter().zip(losses);
        let mut extra: Option<Tensor> = None;
        for ((output, losses), weight) in passes.zip(consistency.losses) {
            if let Some(penalty) = output.penalty.as_ref().filter(|_| weight > 0.0) {
                let penalty = (penalty.of(losses, &target.segments)? * f64::from(weight))?;
                extra = Some(match extra {
                    Some(sum) => (sum + penalty)?,
                    None => penalty,
                });
            }
        }
        Ok(match extra {
            Some(extra) => loss.with(extra),
            None => loss,
        })
    }
}

/// What steps: one token after the other.
pub trait Step: Encode {
    /// The token that every translation starts from.
    fn start_token(&self) -> u32;

    /// Whether its states admit sentences: whether rows of different lengths can step together.
    fn admits(&self, _pass: &Pass) -> bool {
        false
    }

    /// The state before the first token: `beams` rows for every sentence of the memory.
    fn start<'a>(
        &'a self,
        memory: &Memory,
        beams: usize,
        pass: &Pass,
    ) -> Result<Box<dyn DecoderState + 'a>>;
}

/// What a decoder keeps between steps: one row for every hypothesis, the hypotheses of a sentence next to each
/// other. What it holds is up to the model.
pub trait DecoderState: Send {
    /// The number of rows.
    fn rows(&self) -> usize;

    /// Appends one token to each row and returns the logits `[rows, words]` of the next one. Padding is not
    /// among the words. With `maps`, adds every cross-attention of this step to it, with weights `[rows, s]`.
    fn step(&mut self, last: &[u32], maps: Option<&mut Vec<AttentionMap>>) -> Result<Tensor>;

    /// Keeps only these rows, in this order. A row may be taken more than once.
    fn select(&mut self, kept: &[KeptRows]) -> Result<()>;

    /// Adds sentences after those that there are, each with one row that has read nothing.
    ///
    /// # Errors
    /// If [`Step::admits`] is false.
    fn admit(&mut self, _memory: &Memory) -> Result<()> {
        bail!("rows of different lengths cannot step together")
    }
}

/// The rows of one sentence that go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptRows {
    /// The sentence, counted among those of the state. Sentences stay in order.
    pub sentence: usize,
    /// Rows of the whole state; they belong to the sentence.
    pub rows: Vec<usize>,
}

/// The encoder's output.
#[derive(Clone)]
pub struct Memory {
    /// `[n, d]`
    pub states: Tensor,
    pub segments: Segments,
    /// What only the model that made it understands.
    private: Option<Arc<dyn Any + Send + Sync>>,
}

impl Memory {
    pub fn new(states: Tensor, segments: Segments) -> Self {
        Self {
            states,
            segments,
            private: None,
        }
    }

    /// The same with something that [`Memory::private`] gives back.
    pub fn with_private(self, private: impl Any + Send + Sync) -> Self {
        let private: Option<Arc<dyn Any + Send + Sync>> = Some(Arc::new(private));
        Self { private, ..self }
    }

    /// What its maker put there; `None` if the memory is of another model.
    pub fn private<T: Any>(&self) -> Option<&T> {
        self.private.as_ref()?.downcast_ref()
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Memory({:?})", self.states.dims())
    }
}

/// The decoder's output under teacher forcing.
pub struct Output {
    /// `[n, d]`: row i predicts token i of the target.
    pub hidden: Tensor,
    /// What the model minimises in addition to the cross-entropy.
    pub penalty: Option<Box<dyn Penalty>>,
}

/// What a model minimises in addition to the cross-entropy.
pub trait Penalty: Send {
    /// A scalar, given the loss of every token of the target.
    fn of(&self, losses: &[f32], target: &Segments) -> Result<Tensor>;
}

/// Which attention a map shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The source to itself.
    Encoder,
    /// The target to itself.
    Decoder,
    /// The target to the source.
    Cross,
}

/// The weights of one attention head.
#[derive(Clone, Debug)]
pub struct AttentionMap {
    pub place: Place,
    /// Counted from 0.
    pub layer: usize,
    /// Counted from 0.
    pub head: usize,
    /// `[queries, keys]`. The query of a target's row is the state that predicts its token.
    pub weights: Tensor,
}
